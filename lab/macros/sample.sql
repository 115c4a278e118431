{#- A statistic of a group's values, such as avg or var_samp, added up in their order: the same values give the same bits, however they came.
    condition: which rows of the group count. Null without one. -#}
{% macro of_sample(statistic, value, condition='true') -%}
list_aggregate(list_sort(list({{ value }}) filter (where {{ condition }})), '{{ statistic }}')
{%- endmacro %}
