{#- Whether an hour is of an ISO week (UTC) whose drive-hours are all there: none that begins before the horizon of `drivetail prune`. -#}
{% macro is_whole_week(instant) -%}
cast(date_trunc('week', {{ instant }}) as timestamp) >= coalesce((select max(pruned_before_utc) from {{ ref('stg_raw__publication') }}), cast(date_trunc('week', {{ instant }}) as timestamp))
{%- endmacro %}
