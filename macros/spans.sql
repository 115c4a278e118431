{#- CTEs that name what hosts measured over spans (`from_utc` to `to_utc`; where a span is not given, it is its hour): `seen_spans`, with `serial`, the drive
    that bore its name over its span: the name itself where it is unknown, null where it may have passed from one drive to another meanwhile.
    One drive bore its name throughout where one is known to have borne it, and no other, and at no time of it may the name have passed. -#}
{% macro named_spans(relation) -%}
spans as (
    select
        *,
        {{ host_of('drive_id') }} as host,
        {{ host_of('drive_id') }} || regexp_extract(drive_id, '(/.*)$', 1) as device,
        cast(date_trunc('day', hour_utc) as timestamp) as day_utc,
        coalesce(from_utc, hour_utc) as span_from_utc,
        coalesce(to_utc, hour_utc + interval 1 hour) as span_to_utc,
        -- the next delivery may have the next reading: what this one measured is of the time before its last
        least(
            coalesce(to_utc, hour_utc + interval 1 hour), case when to_utc is null and collected_at > coalesce(from_utc, hour_utc) then collected_at end
        ) as read_until_utc
    from {{ relation }}
),

-- few names ever pass from one drive to another
timed_spans as (
    select distinct spans.drive_id, spans.source, spans.day_utc, spans.span_from_utc, spans.span_to_utc, spans.read_until_utc
    from spans
    inner join (select distinct alias from {{ ref('int_names') }} where is_only is not true) as names on spans.drive_id = names.alias
    where spans.source is not null
),

-- stretches of a day in which a source did not measure a device; is_over: it measured the device again after it.
-- Ceph counts nothing that begins again with another drive, so a name may have passed where it measured, too.
unmeasured_stretches as (
    select drive_id, source, day_utc, reached_utc, span_from_utc, span_to_utc > span_from_utc as is_over
    from (
        select
            drive_id, source, day_utc, span_from_utc, span_to_utc,
            coalesce(
                max(span_to_utc) over (
                    partition by drive_id, source, day_utc order by span_from_utc, span_to_utc rows between unbounded preceding and 1 preceding
                ),
                day_utc
            ) as reached_utc
        from (
            select drive_id, source, day_utc, span_from_utc, span_to_utc from timed_spans
            union all
            select distinct drive_id, source, day_utc, day_utc + interval 1 day as span_from_utc, day_utc + interval 1 day as span_to_utc from timed_spans
        ) as ends
    ) as steps
    where span_from_utc > reached_utc and source <> 'ceph'
),

-- A name that passed between two looks did so in a stretch that its source did not measure, if one of them is over and long enough between the looks.
-- Until the first stretch the old drive had the name, from the last one on the new drive. Each half is decided on the day of its look, so that no other day has to be read.
parted_names as (
    {%- set is_long %}least(unmeasured_stretches.span_from_utc, names.to_utc) > greatest(unmeasured_stretches.reached_utc, names.from_utc) + interval {{ var('unmeasured_minutes') }} minute{% endset %}
    select
        unmeasured_stretches.drive_id, unmeasured_stretches.source, unmeasured_stretches.day_utc, names.from_utc,
        case when names.from_utc >= unmeasured_stretches.day_utc then min(unmeasured_stretches.reached_utc) end as old_until_utc,
        case when names.to_utc <= unmeasured_stretches.day_utc + interval 1 day then max(unmeasured_stretches.span_from_utc) end as new_since_utc
    from unmeasured_stretches
    inner join {{ ref('int_names') }} as names
        on unmeasured_stretches.drive_id = names.alias
        and coalesce(names.old_drive_id, names.new_drive_id) is not null
        and names.from_utc < unmeasured_stretches.span_from_utc
        and names.to_utc > unmeasured_stretches.reached_utc
        -- between a look and what is measured first after it there is always some time
        and (unmeasured_stretches.reached_utc > unmeasured_stretches.day_utc or {{ is_long }})
    group by unmeasured_stretches.drive_id, unmeasured_stretches.source, unmeasured_stretches.day_utc, names.from_utc, names.to_utc
    having bool_or(
        unmeasured_stretches.is_over
        and {{ is_long }}
    )
),

passing_spans as (
    select
        drive_id, source, span_from_utc, span_to_utc, read_until_utc,
        min(serial) as serial,
        count(distinct serial) = 1 and count(serial) = count(*) as is_known
    from (
        select
            timed_spans.*,
            case
                when names.drive_id is not null then names.drive_id
                when timed_spans.read_until_utc <= parted_names.old_until_utc then names.old_drive_id
                when timed_spans.span_from_utc >= parted_names.new_since_utc then names.new_drive_id
            end as serial
        from timed_spans
        inner join {{ ref('int_names') }} as names
            on timed_spans.drive_id = names.alias
            and names.from_utc < timed_spans.read_until_utc
            and names.to_utc > timed_spans.span_from_utc
        left join parted_names
            on timed_spans.drive_id = parted_names.drive_id
            and timed_spans.source = parted_names.source
            and timed_spans.day_utc = parted_names.day_utc
            and names.from_utc = parted_names.from_utc
    ) as borne
    group by drive_id, source, span_from_utc, span_to_utc, read_until_utc
),

seen_spans as (
    select
        spans.*,
        case when coalesce(passing_spans.is_known, true) then coalesce(names.drive_id, passing_spans.serial, spans.drive_id) end as serial
    from spans
    left join passing_spans using (drive_id, source, span_from_utc, span_to_utc, read_until_utc)
    left join {{ ref('int_names') }} as names
        on spans.source is not null
        and spans.drive_id = names.alias
        and names.is_only
        and names.from_utc < spans.read_until_utc
        and names.to_utc > spans.span_from_utc
)
{%- endmacro %}

{#- CTEs behind named_spans that add up each drive's spans of a time (`at`: its columns), in `hosts_rows`: a row per drive and time. Spans that follow each
    other add up. Where spans overlap, one counts, of the source that is believed first if it saw enough; paths to one drive (int_serials) add up as well. Devices of one serial that are no paths,
    or whose counters do not agree over the day, are not one drive: each is named by its device that day, with `shared_serial`.
    `path_spans` and `part_spans` were added up with the row, `other_spans` gave way to it (counts). has_group: the relation says which RAID group. -#}
{% macro summed_spans(at, has_group=false) -%}
{%- set measured = [
    'read_ios', 'write_ios', 'read_latency_us', 'write_latency_us', 'read_blocks', 'write_blocks', 'block_bytes', 'latency_us', 'io_count', 'bytes'
] %}
{%- set observed = 'cast(round(coalesce(coverage, 1.0) * 1e9) as bigint)' %}
{%- set said = ['coverage', 'min_coverage', 'collected_at', 'source'] %}
{%- set described = ['raid_group_id', 'declared_kind', 'is_group_guessed'] if has_group else [] %}
{%- set span_hours = hours_between('seen_spans.span_from_utc', 'seen_spans.span_to_utc') %}
{#- An interval counts in the hour in which it ends. A span that begins with its hour may so cover some minutes of the hour before: coverage tells. -#}
{%- set covered_hours = 'coalesce(seen_spans.coverage' ~ ('' if 'hour_utc' in at else ' * ' ~ span_hours) ~ ', ' ~ span_hours ~ ')' %}
{%- set times = at %}
{%- set at = at | join(', ') %}
{%- set common_hours = hours_between('greatest(one.span_from_utc, other.span_from_utc)', 'least(one.span_to_utc, other.span_to_utc)') %}
{%- set seen = 'case when met.common_hours >= 0.9 * (one.span_hours + other.span_hours - met.common_hours) then {0}.{1} * met.common_hours / {0}.covered_hours end' %}
claimants as (
    select
        seen_spans.*,
        serials.is_one_drive, serials.is_one_drive_of_hosts,
        nullif({{ covered_hours }}, 0.0) as covered_hours,
        coalesce(cast(seen_spans.read_ios + seen_spans.write_ios as double), cast(seen_spans.io_count as double)) as ios,
        -- sources without I/O counts are compared by latency
        coalesce(
            case when seen_spans.read_ios is not null then coalesce(seen_spans.read_ios * seen_spans.read_latency_us, 0.0) + coalesce(seen_spans.write_ios * seen_spans.write_latency_us, 0.0) end,
            seen_spans.io_count * seen_spans.latency_us, seen_spans.latency_us * {{ covered_hours }}
        ) as busy_us
    from seen_spans
    inner join {{ ref('int_serials') }} as serials on seen_spans.serial = serials.drive_id
    where seen_spans.host <> '' and seen_spans.drive_id <> seen_spans.serial
),

-- a source's spans of a device, added up
device_hours as (
    select
        serial, {{ at }}, device, source, sum(ios) as ios, sum(busy_us) as busy_us,
        sum(covered_hours) as covered_hours,
        sum({{ hours_between('span_from_utc', 'span_to_utc') }}) as span_hours
    from claimants
    group by serial, {{ at }}, device, source
),

-- devices that saw a drive at once
met_devices as (
    select
        serial, {{ at }}, one.day_utc, one.is_one_drive, one.is_one_drive_of_hosts, one.device, one.source, other.device as other_device, other.source as other_source,
        one.host = other.host as is_one_host,
        sum({{ common_hours }}) as common_hours
    from claimants as one
    inner join claimants as other using (serial, {{ at }})
    where one.device < other.device and {{ overlap('one', 'other') }}
    group by serial, {{ at }}, one.day_utc, one.is_one_drive, one.is_one_drive_of_hosts, one.device, one.source, other.device, other.source, one.host = other.host
),

-- I/Os and busy time of both over a day, for the time that both saw; hours of which they saw less than nine tenths together do not count
compared_devices as (
    select
        met.serial, met.day_utc, met.is_one_drive, met.is_one_drive_of_hosts, met.is_one_host,
        {%- for measure in ('ios', 'busy_us') %}
        {%- set one, other = seen.format('one', measure), seen.format('other', measure) %}
        sum({{ one }}) as one_{{ measure }},
        sum({{ other }}) as other_{{ measure }},
        sum(abs({{ one }} - {{ other }})) as apart_{{ measure }}{{ ',' if not loop.last }}
        {%- endfor %}
    from met_devices as met
    {%- for side, prefix in (('one', ''), ('other', 'other_')) %}
    inner join device_hours as {{ side }}
        on met.{{ prefix }}device = {{ side }}.device and met.{{ prefix }}source = {{ side }}.source
        {%- for name in ['serial'] + times %} and met.{{ name }} = {{ side }}.{{ name }}{% endfor %}
    {%- endfor %}
    group by met.serial, met.day_utc, met.is_one_drive, met.is_one_drive_of_hosts, met.is_one_host, met.device, met.other_device
),

-- Counters agree, so that they may be one measurement, taken twice, where the differences of all hours are at most 10% of the I/Os and of the busy time, or both
-- devices had fewer than 100 I/Os.
contested_days as (
    select distinct serial, day_utc
    from compared_devices
    where case when is_one_host then not is_one_drive
            when is_one_drive_of_hosts and one_ios < 100 and other_ios < 100 then false
            else not (is_one_drive_of_hosts and {{ within_tenth('ios') }} and {{ within_tenth('busy_us') }})
        end
),

attributed_spans as (
    select
        seen_spans.*,
        case when contested_days.serial is null then seen_spans.serial else seen_spans.drive_id end as named_drive_id,
        contested_days.serial as shared_serial
    from seen_spans
    left join contested_days
        on seen_spans.serial = contested_days.serial and seen_spans.day_utc = contested_days.day_utc and seen_spans.host <> '' and seen_spans.drive_id <> seen_spans.serial
    where seen_spans.serial is not null
),

counted_spans as (
    select *, count(*) over (partition by named_drive_id, {{ at }}) as span_count
    from attributed_spans
),

-- a source is weighed by what it saw under one name, or apart under several of a machine; the paths that one host saw stand together
ordered_spans as (
    select *,
        row_number() over (partition by named_drive_id, {{ at }}
            order by {{ latency_rank('several', 'source_coverage') }} asc, source asc nulls first, host_coverage desc, host_collected_at desc nulls last, host asc,
                coalesce(coverage, 1.0) desc, collected_at desc nulls last, drive_id asc, span_from_utc asc
        ) as row_rank
    from (
        select
            *,
            greatest(max(name_coverage) over of_source, cast(sum(case when is_within then 0 else {{ observed }} end) over of_source as double) / 1e9) as source_coverage,
            max(name_coverage) over of_host as host_coverage, max(collected_at) over of_host as host_collected_at
        from (
            select
                *,
                cast(sum({{ observed }}) over (partition by named_drive_id, {{ at }}, source, drive_id) as double) / 1e9 as name_coverage,
                max(span_to_utc) over (
                    partition by named_drive_id, {{ at }}, source order by span_from_utc, span_to_utc, drive_id rows between unbounded preceding and 1 preceding
                ) > span_from_utc as is_within
            from counted_spans where span_count > 1
        ) as names
        window of_source as (partition by named_drive_id, {{ at }}, source), of_host as (partition by named_drive_id, {{ at }}, source, host)
    ) as several
),

-- spans that overlap one of a better rank, and whether both are of paths to the drive: devices of one host, seen by one source at once
overlapping_spans as (
    select
        named_drive_id, {{ at }}, later.row_rank,
        bool_and(
            later.host <> '' and later.host = better.host and later.device <> better.device and coalesce(later.source = better.source, false)
        ) as is_path
    from ordered_spans as later
    inner join ordered_spans as better using (named_drive_id, {{ at }})
    where better.row_rank < later.row_rank and {{ overlap('later', 'better') }}
    group by named_drive_id, {{ at }}, later.row_rank
),

counting_spans as (
    select
        ordered_spans.*,
        coalesce(overlapping_spans.is_path, false) as is_path,
        count(*) over (partition by named_drive_id, {{ at }}) as counting_count
    from ordered_spans
    left join overlapping_spans using (named_drive_id, {{ at }}, row_rank)
    where coalesce(overlapping_spans.is_path, true)
),

hosts_rows as (
    {%- for relation in ('counted_spans where span_count = 1', 'counting_spans where counting_count = 1') %}
    select
        named_drive_id, shared_serial, {{ at }}, {{ (described + measured + said) | join(', ') }},
        cast(0 as bigint) as path_spans, cast(0 as bigint) as part_spans, span_count - 1 as other_spans
    from {{ relation }}
    union all
    {%- endfor %}
    select
        named_drive_id,
        max(shared_serial) as shared_serial,
        {{ at }},
        {%- if has_group %}
        coalesce(min(case when not is_group_guessed then raid_group_id end), min(raid_group_id)) as raid_group_id,
        min(declared_kind) as declared_kind,
        min(case when is_group_guessed then 1 else 0 end) = 1 as is_group_guessed,
        {%- endif %}
        {{ sum_where_all('read_ios') }} as read_ios,
        {{ sum_where_all('write_ios') }} as write_ios,
        {{ mean_by_ios('read_latency_us', 'read_ios') }} as read_latency_us,
        {{ mean_by_ios('write_latency_us', 'write_ios') }} as write_latency_us,
        {{ sum_where_all('read_blocks * block_bytes') }} as read_blocks,
        {{ sum_where_all('write_blocks * block_bytes') }} as write_blocks,
        cast(1 as bigint) as block_bytes,
        coalesce({{ mean_by_ios('latency_us', 'io_count') }}, {{ mean_by_ios('latency_us', observed) }}) as latency_us,
        {{ sum_where_all('io_count') }} as io_count,
        {{ sum_where_all('bytes') }} as bytes,
        -- a path saw what another path saw
        least(1.0, cast(sum(case when is_path then 0 else {{ observed }} end) as double) / 1e9) as coverage,
        min(min_coverage) as min_coverage,
        max(collected_at) as collected_at,
        min(source) as source,
        cast(count(case when is_path then 1 end) as bigint) as path_spans,
        cast(count(case when not is_path then 1 end) - 1 as bigint) as part_spans,
        max(span_count) - count(*) as other_spans
    from counting_spans
    where counting_count > 1
    group by named_drive_id, {{ at }}
)
{%- endmacro %}

{% macro overlap(one, other) %}{{ one }}.span_from_utc < {{ other }}.span_to_utc and {{ other }}.span_from_utc < {{ one }}.span_to_utc{% endmacro %}

{% macro within_tenth(measure) %}coalesce(apart_{{ measure }} <= 0.1 * greatest(one_{{ measure }}, other_{{ measure }}), true){% endmacro %}

{#- A sum of counts; what is partly unknown is unknown. -#}
{% macro sum_where_all(value) %}case when count({{ value }}) = count(*) then cast(sum({{ value }}) as bigint) end{% endmacro %}

{#- The mean of a latency over I/Os, summed in whole nanoseconds: the same in any order of the rows. What no decimal holds is cut to 1e36. -#}
{% macro mean_by_ios(latency_us, ios) -%}
cast(sum(
            case
                when {{ latency_us }} * {{ ios }} >= 1e33 then cast({{ 10 ** 36 }} as decimal(38, 0))
                else cast({{ whole(latency_us ~ ' * ' ~ ios ~ ' * 1000 + 0.5') }} as decimal(38, 0))
            end
        ) as double)
        / nullif(cast(sum(case when {{ latency_us }} is not null then {{ ios }} end) as double), 0.0) / 1000
{%- endmacro %}
