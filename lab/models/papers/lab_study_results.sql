-- Numbers that papers printed beside what experiments give. Grain: experiment_id, id, config_id.
with numbers as (
    select
        *,
        string_split(tests, ' ') as test_list,
        string_split(parameters, ' ') as parameter_list,
        string_split(filesystems, ' ')[1] as filesystem,
        string_split(filesystems, ' ')[2] as other_filesystem,
        try_cast(value as double) as printed,
        -- half of the last digit
        0.5 / power(10, case when contains(value, '.') then length(split_part(value, '.', 2)) else 0 end) as half
    from {{ ref('experiment_numbers') }}
),

-- Before and after: by how much the phase that the paper found better is better here (percent of the other)
cells as (
    select
        cells.experiment_id, cells.config_id,
        numbers.id,
        cells.verdict, cells.is_minor, cells.pct_better,
        numbers.better,
        case numbers.better when 'before' then cells.diff / cells.mean_after else -cells.diff / cells.mean_before end * 100 as pct,
        case numbers.better when 'before' then cells.ci_low / cells.mean_after else -cells.ci_high / cells.mean_before end * 100 as low,
        case numbers.better when 'before' then cells.ci_high / cells.mean_after else -cells.ci_low / cells.mean_before end * 100 as high
    from {{ ref('fct_phase_cells') }} as cells
    inner join numbers
        on cells.benchmark = numbers.benchmark
        and list_contains(numbers.test_list, cells.test)
        and list_contains(numbers.parameter_list, cast(cells.parameter as varchar))
    where cells.verdict <> 'no data' and numbers.judged_as in ('difference', 'no difference')
),

changes as (
    select
        cells.experiment_id, cells.config_id, cells.id,
        -- of a range its end, else the one cell
        case
            when numbers.judged_as = 'no difference' then max(cells.pct_better)
            when numbers.operator = '<=' then max(cells.pct)
            else min(cells.pct)
        end as value,
        case
            when numbers.judged_as = 'no difference' then null
            when numbers.operator = '<=' then arg_max(coalesce(cells.low, cells.pct), cells.pct)
            else arg_min(coalesce(cells.low, cells.pct), cells.pct)
        end as ci_low,
        case
            when numbers.judged_as = 'no difference' then null
            when numbers.operator = '<=' then arg_max(coalesce(cells.high, cells.pct), cells.pct)
            else arg_min(coalesce(cells.high, cells.pct), cells.pct)
        end as ci_high,
        bool_and(cells.verdict = 'inconclusive' or cells.is_minor) as is_alike
    from cells
    inner join numbers on cells.id = numbers.id
    group by
        cells.experiment_id, cells.config_id, cells.id,
        numbers.judged_as, numbers.operator,
        len(numbers.test_list),
        len(numbers.parameter_list)
    having count(*) >= len(numbers.test_list) * len(numbers.parameter_list)
),

-- configurations of several writers, with what one writer gave
writers as (
    select
        configs.experiment_id, configs.config_id,
        devices.major_minor,
        arg_max(configs.config_id, configs.writers) over (partition by configs.experiment_id) as greatest_config_id,
        single.bandwidth_bytes_per_s, single.mean_run_bytes, single.seeks_per_mib, single.extents_per_file
    from {{ ref('dim_configs') }} as configs
    inner join {{ ref('fct_writer_scaling') }} as single on configs.experiment_id = single.experiment_id and single.writers = 1
    left join {{ ref('dim_devices') }} as devices on configs.experiment_id = devices.experiment_id and configs.device_id = devices.device_id
    where configs.writers > 1
),

-- Measures with several values, whose mean is compared: runs of a stress, instances of a slowdown, files. A new measure needs a line here.
samples as (
    select
        runs.experiment_id, runs.config_id,
        numbers.id,
        case numbers.measure
            {%- for measure in ('max_mib_per_s', 'min_mib_per_s', 'mean_mib_per_s', 'sd_mib_per_s', 'mean_seconds', 'aggregate_bytes') %}
            when '{{ measure }}' then runs.{{ measure }}
            {%- endfor %}
            when 'aggregate_gib' then runs.aggregate_bytes / 1073741824.0
        end as value
    from {{ ref('fct_stress_runs') }} as runs
    inner join numbers
        on numbers.judged_as = 'value'
        and list_contains(numbers.test_list, runs.operation)
        and list_contains(numbers.parameter_list, cast(runs.segments as varchar))
    union all
    select measured.experiment_id, measured.config_id, numbers.id, measured.value
    from (
        {%- for measure, value, relation, where in (
            ('temporal_drop_percent', 'mean_drop_ratio * 100', 'fct_temporal_slowdowns', 'true'),
            ('instance_mb_per_s', 'mean_throughput_bytes_per_s / 1e6', 'fct_temporal_slowdowns', 'true'),
            ('usual_mb_per_s', 'baseline_bytes_per_s / 1e6', 'fct_temporal_slowdowns', 'true'),
            ('duration_minutes', 'duration_seconds / 60', 'fct_temporal_slowdowns', 'true'),
            ('permanent_drop_percent', 'drop_ratio * 100', 'fct_permanent_slowdowns', 'true'),
            ('before_mb_per_s', 'median_before_bytes_per_s / 1e6', 'fct_permanent_slowdowns', 'true'),
            ('after_mb_per_s', 'median_after_bytes_per_s / 1e6', 'fct_permanent_slowdowns', 'true'),
            ('set_in_hours', 'set_in_hours - 1', 'fct_permanent_slowdowns', 'true'),
            ('latency_increase_percent', '(ratio - 1) * 100', 'fct_latency_shifts', 'percentile = 50'),
        ) %}
        select experiment_id, config_id, '{{ measure }}' as measure, {{ value }} as value from {{ ref(relation) }} where {{ where }}
        union all
        {%- endfor %}
        select
            experiment_id, config_id,
            'period_minutes' as measure,
            (lead(started_s) over (partition by experiment_id, config_id, phase order by instance asc) - started_s) / 60 as value
        from {{ ref('fct_temporal_slowdowns') }}
        union all
        -- files in the most extents beside whole ones
        select
            files.experiment_id, files.config_id,
            'intrinsic_drop_percent' as measure,
            (1 - files.throughput / (effects.mean_throughput_bytes_per_s / (1 - effects.drop_ratio))) * 100 as value
        from (
            select experiment_id, config_id, extent_count, file_name, {{ of_sample('avg', 'throughput_bytes_per_s') }} as throughput
            from {{ ref('fct_file_reads') }}
            where throughput_bytes_per_s is not null
            group by experiment_id, config_id, extent_count, file_name
        ) as files
        inner join (
            select *
            from {{ ref('fct_fragmentation_effect') }}
            qualify extent_count = max(extent_count) over (partition by experiment_id, config_id)
                and extent_count > min(extent_count) over (partition by experiment_id, config_id)
        ) as effects using (experiment_id, config_id, extent_count)
        union all
        select
            busy.experiment_id, busy.config_id,
            'disk_busy_percent' as measure,
            busy.utilisation * 100 as value
        from {{ ref('fct_device_utilisation') }} as busy
        inner join {{ ref('dim_configs') }} using (experiment_id, config_id)
        left join {{ ref('dim_devices') }} as devices using (experiment_id, device_id)
        where coalesce(devices.kernel_name = busy.device, true)
        union all
        -- traces of several writers beside those of one
        select
            writers.experiment_id,
            writers.greatest_config_id as config_id,
            unnest(['writers_bandwidth', 'writers_run_length', 'writers_seeks']) as measure,
            unnest([
                patterns.bandwidth_bytes_per_s - writers.bandwidth_bytes_per_s,
                patterns.mean_run_bytes - writers.mean_run_bytes,
                patterns.seeks_per_mib - writers.seeks_per_mib
            ]) as value
        from writers
        inner join {{ ref('fct_access_patterns') }} as patterns
            on writers.experiment_id = patterns.experiment_id
            and writers.config_id = patterns.config_id
            and coalesce(writers.major_minor = patterns.device, true)
        union all
        select
            writers.experiment_id,
            writers.greatest_config_id as config_id,
            'writers_extents' as measure,
            files.extent_count - writers.extents_per_file as value
        from writers
        inner join {{ ref('fct_file_fragments') }} as files using (experiment_id, config_id)
        union all
        select
            experiment_id, config_id,
            unnest(['least_drop_percent', 'greatest_drop_percent', 'compound_drop_percent']) as measure,
            unnest([min(drop_ratio), max(drop_ratio), 1 - {{ of_sample('product', '1 - drop_ratio') }}]) * 100 as value
        from {{ ref('fct_mitigations') }}
        where drop_ratio > 0
        group by experiment_id, config_id
        having count(*) = 3
        union all
        select
            experiment_id, config_id,
            unnest(['normal_latency_ms', 'recovery_ratio']) as measure,
            unnest([max(normal_latency_us) / 1000, max(recovery_us) / min(recovery_us) filter (where recovery_us > 0)]) as value
        from {{ ref('fct_extent_reads') }}
        group by experiment_id, config_id
    ) as measured
    inner join numbers on measured.measure = numbers.measure
),

means as (
    select
        samples.experiment_id, samples.config_id, samples.id,
        count(*) as n,
        {{ of_sample('avg', 'samples.value') }} as value,
        {{ of_sample('stddev_samp', 'samples.value') }} as sd
    from samples
    inner join numbers on samples.id = numbers.id
    where samples.value is not null
    group by samples.experiment_id, samples.config_id, samples.id, numbers.judged_as
    -- one value has no interval that could show a direction
    having count(*) >= 2 or numbers.judged_as <> 'direction'
),

-- Synchronous writes: points by the kind of device and the filesystem
points as (
    select
        points.*,
        configs.device_id,
        devices.kind as device_kind,
        lower(filesystems.type) as filesystem
    from {{ ref('fct_sync_write_points') }} as points
    inner join {{ ref('dim_configs') }} as configs using (experiment_id, config_id)
    inner join {{ ref('dim_devices') }} as devices using (experiment_id, device_id)
    inner join {{ ref('dim_filesystems') }} as filesystems using (experiment_id, filesystem_id)
),

-- two filesystems of one device at one buffer
pairs as (
    select
        a.experiment_id, a.config_id,
        numbers.id, numbers.measure,
        a.buffer_bytes,
        list_contains(numbers.parameter_list, cast(a.buffer_bytes as varchar)) as is_buffer,
        a.mean_throughput_kb_per_s > b.mean_throughput_kb_per_s as is_faster,
        tests.welch_p, tests.is_significant,
        {%- for pass, name in (('throughput', 'throughput_kb_per_s'), ('latency', 'latency_us')) %}
        a.mean_{{ name }} / nullif(b.mean_{{ name }}, 0) as {{ pass }}_ratio,
        student_quantile(
            cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(greatest(least(a.n_{{ pass }}, b.n_{{ pass }}) - 1, 0), 0) as double)
        ) * sqrt(
            power(a.sd_{{ name }} / nullif(a.mean_{{ name }}, 0), 2) / a.n_{{ pass }}
            + power(b.sd_{{ name }} / nullif(b.mean_{{ name }}, 0), 2) / b.n_{{ pass }}
        ) as {{ pass }}_relative{{ ',' if not loop.last }}
        {%- endfor %}
    from points as a
    inner join numbers on a.device_kind = numbers.device_kind and a.filesystem = numbers.filesystem
    inner join points as b
        on a.experiment_id = b.experiment_id
        and a.device_id = b.device_id
        and a.buffer_bytes = b.buffer_bytes
        and numbers.other_filesystem = b.filesystem
    left join {{ ref('fct_sync_write_comparisons') }} as tests
        on a.experiment_id = tests.experiment_id
        and a.buffer_bytes = tests.buffer_bytes
        and least(a.config_id, b.config_id) = tests.config_a
        and greatest(a.config_id, b.config_id) = tests.config_b
        and tests."pass" = 'throughput'
    -- of several configurations with the other filesystem the first
    qualify dense_rank() over (partition by a.experiment_id, a.config_id, numbers.id order by b.config_id asc) = 1
),

summaries as (
    select
        summary.experiment_id, summary.config_id,
        min(summary.throughput_flat_from_bytes) / 1024.0 as throughput_flat_from_kb,
        min(summary.latency_flat_until_bytes) / 1024.0 as latency_flat_until_kb,
        count(distinct phases.phase) as phases
    from {{ ref('fct_sync_write_summary') }} as summary
    inner join {{ ref('fct_sync_write_phases') }} as phases using (experiment_id, config_id)
    group by summary.experiment_id, summary.config_id
),

answers as (
    select experiment_id, config_id, id, value, ci_low, ci_high, is_alike, cast(null as boolean) as is_significant
    from changes
    union all
    select
        experiment_id, config_id, id, value,
        {%- for end, sign in (('ci_low', '-'), ('ci_high', '+')) %}
        value {{ sign }} coalesce(
            student_quantile(cast(1 - {{ var('lab_level') }} / 2 as double), cast(nullif(n - 1, 0) as double)) * sd / sqrt(n), 0
        ) as {{ end }},
        {%- endfor %}
        null as is_alike,
        null as is_significant
    from means
    union all
    select
        points.experiment_id, points.config_id,
        numbers.id,
        points.mean_throughput_kb_per_s as value,
        coalesce(points.low_throughput_kb_per_s, points.mean_throughput_kb_per_s) as ci_low,
        coalesce(points.high_throughput_kb_per_s, points.mean_throughput_kb_per_s) as ci_high,
        null as is_alike,
        null as is_significant
    from points
    inner join numbers
        on numbers.measure = 'throughput'
        and points.device_kind = numbers.device_kind
        and points.filesystem = numbers.filesystem
        and list_contains(numbers.parameter_list, cast(points.buffer_bytes as varchar))
    {%- for measure, value, low, high, where in (
        ('p', 'min(welch_p)', 'min(welch_p)', 'max(welch_p)', 'is_buffer'),
        (
            'throughput_ratio', 'min(throughput_ratio)', 'min(throughput_ratio * (1 - coalesce(throughput_relative, 0)))',
            'max(throughput_ratio * (1 + coalesce(throughput_relative, 0)))', 'is_buffer and throughput_ratio is not null'
        ),
        (
            'latency_ratio', 'min(latency_ratio)', 'min(latency_ratio * (1 - coalesce(latency_relative, 0)))',
            'max(latency_ratio * (1 + coalesce(latency_relative, 0)))', 'is_buffer and latency_ratio is not null'
        ),
        ('first_faster_kb', 'min(buffer_bytes) filter (where is_faster) / 1024.0', none, none, 'true'),
        ('last_significant_kb', 'max(buffer_bytes) filter (where is_faster and is_significant) / 1024.0', none, none, 'true'),
    ) %}
    union all
    select
        experiment_id, config_id, id,
        {{ value }} as value,
        {{ low or value }} as ci_low,
        {{ high or value }} as ci_high,
        null as is_alike,
        bool_and(is_significant) as is_significant
    from pairs
    where measure = '{{ measure }}' and {{ where }}
    group by experiment_id, config_id, id
    {%- endfor %}
    {%- for measure in ('throughput_flat_from_kb', 'latency_flat_until_kb', 'phases') %}
    union all
    select
        summaries.experiment_id, summaries.config_id,
        numbers.id,
        summaries.{{ measure }} as value,
        summaries.{{ measure }} as ci_low,
        summaries.{{ measure }} as ci_high,
        null as is_alike,
        null as is_significant
    from summaries
    inner join (select distinct experiment_id, config_id, device_kind, filesystem from points) as points using (experiment_id, config_id)
    inner join numbers
        on numbers.measure = '{{ measure }}'
        and points.device_kind = coalesce(numbers.device_kind, points.device_kind)
        and points.filesystem = coalesce(numbers.filesystem, points.filesystem)
    {%- endfor %}
)

select
    experiments.experiment_id,
    numbers.id,
    coalesce(answers.config_id, '') as config_id,
    numbers.kind, numbers.metric, numbers.operator,
    numbers.value as paper_value,
    numbers.unit,
    answers.value, answers.ci_low, answers.ci_high,
    case
        when numbers.judged_as = 'not comparable' then 'not comparable'
        when answers.id is null then 'no data'
        when numbers.judged_as = 'no difference' then case when answers.is_alike then 'agrees' else 'differs' end
        -- a p of the paper depends on how often it measured; that it is small, or is not, does less
        when numbers.judged_as = 'significance'
            then case when answers.is_significant = (numbers.printed <= {{ var('lab_significant_p') }}) then 'agrees' else 'differs' end
        when answers.value is null then 'differs'
        when numbers.judged_as = 'direction'
            then case when case numbers.better when 'more' then answers.ci_low > 0 else answers.ci_high < 0 end then 'agrees' else 'differs' end
        -- a direction must be significant
        when numbers.judged_as = 'difference' and answers.ci_low <= 0 then 'differs'
        when numbers.operator in ('>', '>=') then case when answers.ci_high >= numbers.printed - numbers.half then 'agrees' else 'differs' end
        when numbers.operator = '<=' then case when answers.ci_low <= numbers.printed + numbers.half then 'agrees' else 'differs' end
        when numbers.operator = '<' then case when answers.ci_low < numbers.printed then 'agrees' else 'differs' end
        when answers.ci_low <= numbers.printed + numbers.half and answers.ci_high >= numbers.printed - numbers.half then 'agrees'
        else 'differs'
    end as verdict,
    case
        when numbers.judged_as = 'not comparable' then numbers.reason
        when answers.id is not null then case when answers.value is null and numbers.judged_as <> 'significance' then 'there is none' end
        when experiments.kind <> numbers.kind then 'an experiment of kind ' || numbers.kind || ' measures it'
        when numbers.kind = 'hdfs' then 'no counter shows it, or no traces or maps of one and of several writers'
        when numbers.kind = 'read_variability' then 'no file or trace shows it'
        when numbers.kind = 'sync_writes'
            then 'no results of ' || concat_ws(' on a device of kind ', replace(numbers.filesystems, ' ', ' and '), numbers.device_kind)
        when numbers.judged_as = 'value' then 'no IOR run with as many segments has landed'
        else 'the experiment lacks a cell of it, or has fewer than two results in a phase'
    end as reason
from {{ ref('dim_experiments') }} as experiments
cross join numbers
left join answers
    on experiments.experiment_id = answers.experiment_id
    and numbers.id = answers.id
    and experiments.kind = numbers.kind
    and numbers.judged_as <> 'not comparable'
