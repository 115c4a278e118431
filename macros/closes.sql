{#- Whether a replacement is that of a decision on the drive: not after the next decision on it, and not before it was decided, unless it is the last one: the swap
    may have happened before the decision was recorded. -#}
{% macro closes(replaced, decisions) -%}
{{ replaced }}.drive_id = {{ decisions }}.drive_id
    and {{ decisions }}.verdict <> 'retract'
    and (
        {{ decisions }}.superseded_at is null
        or ({{ replaced }}.replaced_at >= {{ decisions }}.hour_utc and {{ replaced }}.replaced_at <= {{ decisions }}.superseded_at)
    )
{%- endmacro %}
