"""An independent reference of the public contract: plain loops, standard library and pyarrow's file readers only."""
