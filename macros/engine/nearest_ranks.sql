{#- The values of a group at some percentiles in hundred-thousandths, by nearest rank (the k-th smallest of n, k = ceil(q * n)), as an array.
    DuckDB works a decimal q out in integers. Spark's is a double: less than 1e-15 below q, n * q never exceeds k for n up to 8e9. -#}
{% macro nearest_ranks(value, ranks) %}{{ return(adapter.dispatch('nearest_ranks')(value, ranks)) }}{% endmacro %}
{% macro duckdb__nearest_ranks(value, ranks) -%}
    quantile_disc({{ value }}, [{% for rank in ranks %}{{ '%.5f' % (rank / 100000) }}{{ ', ' if not loop.last }}{% endfor %}])
{%- endmacro %}
{% macro spark__nearest_ranks(value, ranks) -%}
    percentile_disc(array({% for rank in ranks %}{{ '%.5f' % (rank / 100000) }}D - 1e-15D{{ ', ' if not loop.last }}{% endfor %})) within group (order by {{ value }})
{%- endmacro %}
