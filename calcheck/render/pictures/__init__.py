"""Pictures of reports: each module describes those of one kind of report, from the report alone."""
