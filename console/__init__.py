"""`drivetail serve`: the published warehouse in the browser (docs/console.md). It computes nothing: it selects from marts."""
