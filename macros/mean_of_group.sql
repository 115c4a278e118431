{#- The mean of latencies in us, to the last bit and whatever the order of the rows: summed as whole numbers of 2^-52 us. The sum goes back
    to doubles in two parts that are both exact, so that it is rounded once. Nobody waits 30 years (1e15 us); below 1 us it is rounded. -#}
{% macro mean_of_group(latency_us) -%}
    {%- set parts = 4503599627370496 -%}
    {%- set sum = 'sum(cast(case when ' ~ latency_us ~ ' > 1e15 then 1e15 else ' ~ latency_us ~ ' end * ' ~ parts ~ ' as decimal(38, 0)))' -%}
    (cast({{ sum }} - {{ sum }} % {{ parts }} as double) + cast({{ sum }} % {{ parts }} as double)) / {{ parts }} / count({{ latency_us }})
{%- endmacro %}
