-- The thresholds that these marts were computed with, for pages and commands that show or use one. Grain: name, kind.
select 'slow_threshold' as name, kind, slow_at as value, 'ratio' as unit, 'slowdown from which a drive-hour is slow' as description
from {{ ref('int_thresholds') }}
union all
select 'mild_threshold' as name, kind, mild_at as value, 'ratio' as unit, 'slowdown from which a drive-hour is mildly slow' as description
from {{ ref('int_thresholds') }}
{%- for name, unit, description in [
    ('min_reporting_drives', 'count', 'fewer latencies make no median worth dividing by'),
    ('min_group_width', 'count', 'fewer data drives make no RAID group worth comparing'),
    ('chronic_slowdown', 'ratio', 'median slowdown over the window from which a drive is chronic'),
    ('chronic_window_days', 'days', 'window of a chronic drive'),
    ('default_block_bytes', 'bytes', 'size of a block where a record gives none'),
] %}
union all
select '{{ name }}' as name, 'all' as kind, cast({{ var(name) }} as double) as value, '{{ unit }}' as unit, '{{ description }}' as description
{%- endfor %}
{#- further settings of drivetail.toml #}
{%- for setting in var('settable') if not setting.startswith(('slow_threshold', 'mild_threshold')) %}
{%- set kind = setting.rsplit('_', 1)[1] %}
{%- set of_kind = kind in ('disk', 'ssd', 'nvme', 'unknown') %}
{%- set name = setting.rsplit('_', 1)[0] if of_kind else setting %}
union all
select
    '{{ name }}' as name, '{{ kind if of_kind else 'all' }}' as kind, cast({{ var(setting) }} as double) as value,
    '{{ 'us' if name.endswith('_us') else 'hours' if name.endswith('_hours') else 'days' if name.endswith('_days') else 'bytes' if name.endswith('_bytes')
        else 'bytes per second' if name.endswith('_second') else 'ratio' if name.endswith(('_budget', '_share', '_slowdown', '_ratio')) else 'count' }}' as unit,
    'docs/thresholds.md' as description
{%- endfor %}
