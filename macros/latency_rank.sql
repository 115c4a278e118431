{#- Place of a record of latencies among those of the same drive and time, 1 first: what a host saw too little of comes after all that was seen
    enough of, and each by the precedence of its source. An array's report on its own drives (`source` is null) stands, however little it is. -#}
{% macro latency_rank(record, coverage='coverage') -%}
{{ source_rank('latency', record ~ '.source') }}
    + case
        when {{ record }}.source is not null and {{ record }}.{{ coverage }} < {{ record }}.min_coverage
            then {{ var('source_precedence')['latency'] | length + 1 }}
        else 0
    end
{%- endmacro %}
