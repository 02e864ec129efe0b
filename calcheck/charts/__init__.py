"""Pictures: described as plain data, written as Vega-Lite specifications, drawn as SVG, PNG and PDF."""
