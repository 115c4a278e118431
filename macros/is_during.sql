{#- Whether an event lasted into an hour; one without an end lasts an hour. -#}
{% macro is_during(event, hour_utc) -%}
{{ event }}.occurred_at < {{ hour_utc }} + interval 1 hour and coalesce({{ event }}.ended_at, {{ event }}.occurred_at + interval 1 hour) > {{ hour_utc }}
{%- endmacro %}
