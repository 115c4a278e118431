{#- Place of a source in the stated precedence of an aspect (var `source_precedence`): 1 first. A record of a source that names drives and RAID
    groups itself (`source` is null) stands as `bundle`; a source that the list does not name comes last. -#}
{% macro source_rank(aspect, source) -%}
case coalesce({{ source }}, 'bundle')
{%- for name in var('source_precedence')[aspect] %}
    when '{{ name }}' then {{ loop.index }}
{%- endfor %}
    else {{ var('source_precedence')[aspect] | length + 1 }}
end
{%- endmacro %}
