{#- Latency (us) below which a slow drive of a kind is of no concern; a drive of unknown kind has a floor of its own. -#}
{% macro alert_floor(peer_kind) -%}
case coalesce({{ peer_kind }}, 'unknown')
{%- for kind in ('disk', 'ssd', 'nvme') %}
        when '{{ kind }}' then cast({{ var('alert_min_latency_us_' ~ kind) }} as double)
{%- endfor %}
        else cast({{ var('alert_min_latency_us_unknown') }} as double)
    end
{%- endmacro %}

{#- Why an alert or an action is held back. -#}
{% macro below_the_floor() %}'no slow hour reaches alert_min_latency_us of its kind'{% endmacro %}
