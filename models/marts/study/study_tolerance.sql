-- Savings that adaptive and reactive reads around slow drives would have made in all hours. Grain: kind.
{{ tolerance_by(['kind']) }}
