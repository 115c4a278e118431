{#- What the linter renders in place of dispatched macros and of dbt_project.yml's vars: the shape of the SQL, not its meaning. -#}
{% macro hours_between(a, b) %}timestampdiff({{ a }}, {{ b }}){% endmacro %}
{% macro hour_index(a) %}hour_index({{ a }}){% endmacro %}
{% macro days_between(a, b) %}days_between({{ a }}, {{ b }}){% endmacro %}
{% macro largest(a, n) %}max({{ a }}, {{ n }}){% endmacro %}
{% macro nth(a, n) %}nth({{ a }}, {{ n }}){% endmacro %}
{% macro disjoint_segments(periods, keys) %}ranked as (select * from {{ periods }})

select * from ranked{% endmacro %}
{% macro var(name) %}{% if name == 'explicit_event_types' %}{{ return(['a', 'b']) }}{% else %}1{% endif %}{% endmacro %}
