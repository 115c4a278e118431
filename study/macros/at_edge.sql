{#- The column that counts values of at least `x`, for whichever of the edges x is: `at_edge('x', [1.5, 2.0], 'hours')` reads hours_150 or hours_200. -#}
{% macro at_edge(x, edges, prefix) -%}
    case {% for edge in edges %}when {{ x }} = {{ edge }} then {{ prefix }}_{{ edge_name(edge) }} {% endfor %}end
{%- endmacro %}
