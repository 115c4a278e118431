{%- set variant_thresholds = [1.2, 1.5, 2.0, 3.0, 4.0, 5.0] %}
-- The headlines under other rules: hits of total by RAID group. Grain: variant, id, kind, cluster_id.
{%- set slow, mild = edge_name(var('study_edges')[1]), edge_name(var('study_edges')[0]) %}
{#- how slowdowns are made otherwise: variant, and how the columns of int_variant_days begin that count it -#}
{%- set made_otherwise = [
    ('read only', 'read'), ('write only', 'write'), ('mean instead of median', 'mean'), ('minimum I/O 10', 'io_10'), ('minimum I/O 100', 'io_100')
] %}
with drive_groups as (
    select
        drives.kind,
        days.raid_group_id,
        sum(days.slowdown_hours) as slowdown_hours
{%- for edge in variant_thresholds %},
        sum(days.slowdown_hours_{{ edge_name(edge) }}) as slowdown_hours_{{ edge_name(edge) }}
{%- endfor %}
    from {{ source('intermediate', 'int_drive_days') }} as days
    inner join {{ source('intermediate', 'int_drives') }} as drives on days.drive_id = drives.drive_id
    group by drives.kind, days.raid_group_id
),

mixed_groups as (
    select days.raid_group_id
    from {{ source('intermediate', 'int_drive_days') }} as days
    inner join {{ source('intermediate', 'int_drives') }} as drives on days.drive_id = drives.drive_id
    where days.slowdown_hours > 0
    group by days.raid_group_id
    having count(distinct drives.model) > 1
),

raid_days as (
    select
        days.*,
        kinds.kind,
        case
            when days.data_drive_count <= 4 then 'width 3-4'
            when days.data_drive_count <= 6 then 'width 5-6'
            when days.data_drive_count <= 8 then 'width 7-8'
            else 'width 9+'
        end as width_class
    from {{ source('intermediate', 'int_raid_group_days') }} as days
    inner join {{ source('intermediate', 'int_raid_groups__kinds') }} as kinds on days.raid_group_id = kinds.raid_group_id
),

raid_groups as (
    select
        kind, raid_group_id, width_class, is_complete,
        sum(drive_hours) as drive_hours,
        sum(slow_drive_hours) as slow_drive_hours,
        sum(raid_hours) as raid_hours
{%- for edge in variant_thresholds %},
        sum(tail_1_{{ edge_name(edge) }}) as tail_1_{{ edge_name(edge) }}
{%- endfor %}
{%- for rank in (2, 3) %}
{%- for edge in (mild, slow) %},
        sum(tail_{{ rank }}_{{ edge }}) as tail_{{ rank }}_{{ edge }}
{%- endfor %}
{%- endfor %}
    from raid_days
    group by kind, raid_group_id, width_class, is_complete
),

some_raid_groups as (
    select restrictions.variant, raid_groups.*
    from raid_groups
    left join mixed_groups on raid_groups.raid_group_id = mixed_groups.raid_group_id
    inner join (values ('complete groups'), ('mixed models'), ('width 3-4'), ('width 5-6'), ('width 7-8'), ('width 9+')) as restrictions (variant)
        on restrictions.variant = raid_groups.width_class
        or (restrictions.variant = 'complete groups' and raid_groups.is_complete)
        or (restrictions.variant = 'mixed models' and mixed_groups.raid_group_id is not null)
),

intervals as (
    select
        kind, raid_group_id, degree, interval_hours,
        is_left_censored or is_right_censored as is_censored,
        {{ hour_index('started_at') }} - {{ hour_index('lag(ended_at) over (partition by drive_id, degree order by started_at)') }} as hours_since_end,
        {{ hour_index('started_at') }} - {{ hour_index('lag(started_at) over (partition by drive_id, degree order by started_at)') }} as hours_since_start,
        lag(raid_group_id) over (partition by drive_id, degree order by started_at) as previous_raid_group_id
    from {{ source('intermediate', 'int_slowdown_intervals') }}
),

interval_groups as (
    select
        kind, raid_group_id,
        count(case when degree = 'slow' and previous_raid_group_id = raid_group_id then 1 end) as later_intervals,
        count(case when degree = 'slow' and previous_raid_group_id = raid_group_id and hours_since_end <= 24 then 1 end) as later_by_end,
        count(case when degree = 'slow' and previous_raid_group_id = raid_group_id and hours_since_start <= 24 then 1 end) as later_by_start,
        count(case when degree = 'mild' then 1 end) as mild_intervals,
        count(case when degree = 'mild' and interval_hours > 1 then 1 end) as mild_long_intervals,
        count(case when degree = 'mild' and interval_hours >= 8 then 1 end) as mild_eight_hours_intervals,
        count(case when degree = 'slow' and not is_censored then 1 end) as whole_intervals,
        count(case when degree = 'slow' and not is_censored and interval_hours > 1 then 1 end) as whole_long_intervals
    from intervals
    group by kind, raid_group_id
),

arrival_groups as (
    select
        kind, raid_group_id,
        count(*) as arrivals,
        count(case when cast(previous_hour_utc as date) = cast(hour_utc as date) then 1 end) as day_arrivals
    from {{ source('intermediate', 'int_slowdown_arrivals') }}
    group by kind, raid_group_id
),

{#- what each relation answers, in one pass over it: variant (none: the relation says), question, hits, total -#}
{%- set of_drives, of_groups, of_variants, of_some, of_intervals, of_arrivals = [], [], [], [(none, 'slow', 'slow_drive_hours', 'drive_hours')], [
    ('interval end to start', 'arrivals', 'later_by_end', 'later_intervals'),
    ('interval start to start', 'arrivals', 'later_by_start', 'later_intervals'),
    ('intervals at 1.5x', 'long_intervals', 'mild_long_intervals', 'mild_intervals'),
    ('intervals at 1.5x', 'eight_hours', 'mild_eight_hours_intervals', 'mild_intervals'),
    ('whole intervals only', 'long_intervals', 'whole_long_intervals', 'whole_intervals')
], [('calendar day', 'arrivals', 'day_arrivals', 'arrivals')] %}
{%- for edge in variant_thresholds %}
{%- set variant = 'threshold ' ~ '%g' | format(edge | float) %}
{%- do of_drives.append((variant, 'slow', 'slowdown_hours_' ~ edge_name(edge), 'slowdown_hours')) %}
{%- do of_groups.append((variant, 'tail_1', 'tail_1_' ~ edge_name(edge), 'raid_hours')) %}
{%- endfor %}
{%- for variant, made in made_otherwise %}{% do of_variants.append((variant, 'slow', made ~ '_slow_hours', made ~ '_hours')) %}{% endfor %}
{%- for side in ('read', 'write') %}
{%- do of_variants.append((side ~ ' only', 'multiple', side ~ '_multiple_hours', side ~ '_hours')) %}
{%- do of_variants.append((side ~ ' only', 'ticks', side ~ '_tick_hours', side ~ '_multiple_hours')) %}
{%- endfor %}
{%- for ratio in ('rate', 'size') %}{% do of_variants.append(('unconditional', ratio, ratio ~ '_imbalanced_hours', ratio ~ '_hours')) %}{% endfor %}
{%- for variant, made in made_otherwise + [(none, none)] %}
{%- set tail, raid_hours = (made ~ '_tail', made ~ '_raid_hours') if made else ('tail', 'raid_hours') %}
{%- for rank in (1, 2, 3) %}
{%- set answers = of_variants if variant else of_some %}
{%- do answers.append((variant, 'tail_' ~ rank, tail ~ '_' ~ rank ~ '_' ~ slow, raid_hours)) %}
{#- of the second and third the paper prints the share below -#}
{%- do answers.append((variant, 'mild_tail_' ~ rank, (raid_hours ~ ' - ' if rank > 1 else '') ~ tail ~ '_' ~ rank ~ '_' ~ mild, raid_hours)) %}
{%- endfor %}
{%- endfor %}

{#- each column once -#}
{%- set counts = [] %}
{%- for answer in of_variants %}{% for count in answer[2:] %}{% for part in count.split(' - ') if part not in counts %}{% do counts.append(part) %}{% endfor %}{% endfor %}{% endfor %}

variant_groups as (
    select
        kind,
        raid_group_id
{%- for count in counts %},
        sum({{ count }}) as {{ count }}
{%- endfor %}
    from {{ ref('int_variant_days') }}
    group by kind, raid_group_id
),

counted_answers as (
{%- for relation, answers in [
    ('drive_groups', of_drives), ('raid_groups', of_groups), ('variant_groups', of_variants), ('some_raid_groups', of_some),
    ('interval_groups', of_intervals), ('arrival_groups', of_arrivals)
] %}
    select
        {{ 'answers' if answers[0][0] else 'of_group' }}.variant,
        answers.question,
        of_group.kind,
        of_group.raid_group_id as cluster_id,
        case answers.number{% for answer in answers %} when {{ loop.index }} then of_group.{{ answer[2] }}{% endfor %} end as hits,
        case answers.number{% for answer in answers %} when {{ loop.index }} then of_group.{{ answer[3] }}{% endfor %} end as total
    from {{ relation }} as of_group
    cross join (
        values{% for answer in answers %} ({{ loop.index }}, '{{ answer[0] }}', '{{ answer[1] }}'){{ ',' if not loop.last }}{% endfor %}
    ) as answers (number, variant, question)
    {%- if not loop.last %}
    union all
    {%- endif %}
{%- endfor %}
),

answered_questions as (
    select variant, question, kind, cluster_id, cast(sum(hits) as bigint) as hits, cast(sum(total) as bigint) as total
    from counted_answers
    group by variant, question, kind, cluster_id
    having sum(total) > 0
)

select answered_questions.variant, ids.id, answered_questions.kind, answered_questions.cluster_id, answered_questions.hits, answered_questions.total
from answered_questions
inner join (
    values
        ('slow', 'disk', 'F01-01'), ('slow', 'ssd', 'F01-02'),
        ('tail_1', 'disk', 'F02-01'), ('tail_1', 'ssd', 'F02-02'),
        ('tail_2', 'disk', 'F03-02'), ('tail_2', 'ssd', 'F03-05'),
        ('tail_3', 'disk', 'F03-03'), ('tail_3', 'ssd', 'F03-06'),
        ('mild_tail_1', 'disk', 'F02-05'), ('mild_tail_1', 'ssd', 'F02-06'),
        ('mild_tail_2', 'disk', 'F4A-T2-1.5'), ('mild_tail_2', 'ssd', 'F4B-T2-1.5'),
        ('mild_tail_3', 'disk', 'F4A-T3-1.5'), ('mild_tail_3', 'ssd', 'F4B-T3-1.5'),
        ('long_intervals', 'disk', 'F04-01'), ('long_intervals', 'ssd', 'F04-02'),
        ('eight_hours', 'disk', 'F04-03'), ('eight_hours', 'ssd', 'F04-04'),
        ('arrivals', 'disk', 'F05-01'), ('arrivals', 'ssd', 'F05-02'),
        ('rate', 'disk', 'F08-02'), ('rate', 'ssd', 'F08-02'),
        ('size', 'disk', 'F08-06'), ('size', 'ssd', 'F08-07'),
        ('multiple', 'ssd', 'VST-02'), ('ticks', 'ssd', 'VST-03')
) as ids (question, kind, id)
    on answered_questions.question = ids.question and answered_questions.kind = ids.kind
