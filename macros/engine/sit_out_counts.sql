{#- OpenZFS's counts of one RAID group after each of its rises in order, as an array of structs: `total`, the rises since the last drop, and
    `counts`, one per drive by `drive_number` (from 1). The first is the beginning, all 0. A rise drops all counts when the group has had as
    many as it has children; a count above the limit begins a sit-out, after which all counts start again at 0. -#}
{% macro sit_out_counts() %}{{ return(adapter.dispatch('sit_out_counts')()) }}{% endmacro %}
{% macro duckdb__sit_out_counts() -%}
    {#- DuckDB 1.5 folds a list into one of its own elements only: the states so far ride along in each -#}
    list_reduce(
        list_prepend(
            {
                'drive_number': cast(null as bigint), 'rise': cast(null as bigint), 'peers': cast(null as bigint),
                'states': [{'total': cast(0 as bigint), 'counts': list_transform(list(distinct drive_number), lambda number: cast(0 as bigint))}]
            },
            list({
                'drive_number': drive_number, 'rise': sit_out_rise, 'peers': peer_count,
                'states': cast([] as struct(total bigint, counts bigint[])[])
            } order by rise_number)
        ),
        lambda last, rise: {
            'drive_number': rise.drive_number, 'rise': rise.rise, 'peers': rise.peers,
            'states': list_append(last.states, {
                'total': case when last.states[-1].total + rise.rise >= rise.peers then 0 else last.states[-1].total + rise.rise end,
                'counts': list_transform(
                    last.states[-1].counts,
                    lambda count, number: greatest(
                        case when list_max(last.states[-1].counts) > {{ var('zfs_outlier_limit') }} then 0 else count end
                        - case when last.states[-1].total + rise.rise >= rise.peers then {{ var('zfs_drop') }} else 0 end,
                        0
                    ) + case when number = rise.drive_number then rise.rise else 0 end
                )
            })
        }
    ).states
{%- endmacro %}
{% macro spark__sit_out_counts() -%}
    {%- set last = 'element_at(states, -1)' -%}
    aggregate(
        sort_array(collect_list(struct(rise_number, drive_number, sit_out_rise as rise, peer_count as peers))),
        array(named_struct('total', cast(0 as bigint), 'counts', transform(collect_set(drive_number), number -> cast(0 as bigint)))),
        (states, rise) -> concat(states, array(named_struct(
            'total', case when {{ last }}.total + rise.rise >= rise.peers then cast(0 as bigint) else {{ last }}.total + rise.rise end,
            'counts', transform(
                {{ last }}.counts,
                (count, place) -> greatest(
                    case when array_max({{ last }}.counts) > {{ var('zfs_outlier_limit') }} then cast(0 as bigint) else count end
                    - case when {{ last }}.total + rise.rise >= rise.peers then {{ var('zfs_drop') }} else 0 end,
                    cast(0 as bigint)
                ) + case when place + 1 = rise.drive_number then rise.rise else cast(0 as bigint) end
            )
        )))
    )
{%- endmacro %}
