{#- The options in which two sides differ, each with its values, such as `bs 4096 against 1048576`; null where they are alike. A side is a list of texts
    with a line `option=value` for each option. asked: a list of options that may differ, for they are what is compared. -#}
{% macro differing_options(a, b, asked='[]') -%}
nullif(array_to_string(list_transform(
    list_sort(list_distinct(list_transform(
        -- what not every result has
        list_filter(
            {{ settings_of('list_concat(coalesce(' ~ a ~ ', []), coalesce(' ~ b ~ ', []))') }},
            lambda setting: len(list_filter(
                list_concat(coalesce({{ a }}, []), coalesce({{ b }}, [])),
                lambda options: not list_contains(string_split(options, chr(10)), setting)
            )) > 0 and not list_contains({{ asked }}, split_part(setting, '=', 1))
        ),
        lambda setting: split_part(setting, '=', 1)
    ))),
    lambda name: name || ' ' || {{ values_of(a) }} || ' against ' || {{ values_of(b) }}
), ', '), '')
{%- endmacro %}

{#- Every `option=value` of a list of such texts. -#}
{% macro settings_of(side) -%}
list_distinct(flatten(list_transform(coalesce({{ side }}, []), lambda options: string_split(options, chr(10)))))
{%- endmacro %}

{#- The values of the option `name` on a side. -#}
{% macro values_of(side) -%}
coalesce(nullif(array_to_string(list_sort(list_transform(
    list_filter({{ settings_of(side) }}, lambda setting: split_part(setting, '=', 1) = name),
    lambda setting: substr(setting, length(name) + 2)
)), ' and '), ''), 'not given')
{%- endmacro %}
