{#- How often something is drawn in a bootstrap, Poisson of mean 1, by a text: the same text is drawn as often every time. -#}
{% macro poisson_draw(text) -%}
case
{%- for ratio in (0.36787944, 0.73575888, 0.91969860, 0.98101184, 0.99634015, 0.99940582, 0.99991676) %}
    when {{ hash_ratio(text) }} < {{ ratio }} then {{ loop.index0 }}
{%- endfor %}
    else 7
end
{%- endmacro %}
