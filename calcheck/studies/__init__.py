"""What people do with metrics: one folder for each study."""
