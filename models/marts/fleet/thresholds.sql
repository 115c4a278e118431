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
