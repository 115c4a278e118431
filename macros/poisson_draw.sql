{#- How often something is drawn in a bootstrap, Poisson of mean 1, at the rank `ratio` (0..1). -#}
{% macro poisson_draw(ratio) -%}
case
{%- for end in (0.36787944, 0.73575888, 0.91969860, 0.98101184, 0.99634015, 0.99940582, 0.99991676) %}
    when {{ ratio }} < {{ end }} then {{ loop.index0 }}
{%- endfor %}
    else 7
end
{%- endmacro %}
