{#- Whole nanoseconds of a latency, rounded half up, as a double: exact up to 104 days. -#}
{% macro nanoseconds(latency_us) %}cast({{ whole('(' ~ latency_us ~ ') * 1000 + 0.5') }} as double){% endmacro %}

{#- Exactly 1.5, 2 or 3 times the median in whole nanoseconds: firmware that throttles answers in steps of its timer. Most latencies are
    far below, which one comparison shows: what is at least 1.5 medians in whole nanoseconds is at least 1.5 of them less 1.25 ns. -#}
{% macro is_multiple(latency_us, median_us) -%}
    case
        when {{ latency_us }} < 1.4 * {{ median_us }} - 0.002 then false
        else {{ nanoseconds(median_us) }} > 0
            and 2 * {{ nanoseconds(latency_us) }} in (
                3 * {{ nanoseconds(median_us) }}, 4 * {{ nanoseconds(median_us) }}, 6 * {{ nanoseconds(median_us) }}
            )
    end
{%- endmacro %}

{#- A whole number of the firmware's ticks. -#}
{% macro is_in_ticks(latency_us) %}{{ nanoseconds(latency_us) }} % (1000 * {{ var('latency_quantum_us') }}) = 0{% endmacro %}

{#- Such a multiple, with both latencies in whole ticks. -#}
{% macro is_multiple_in_ticks(latency_us, median_us) -%}
    {{ is_multiple(latency_us, median_us) }} and {{ is_in_ticks(latency_us) }} and {{ is_in_ticks(median_us) }}
{%- endmacro %}
