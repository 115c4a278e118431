-- What adaptive and reactive reads around slow drives would have saved in all hours. Grain: kind.
{{ tolerance_by(['kind']) }}
