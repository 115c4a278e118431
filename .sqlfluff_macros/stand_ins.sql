{#- What the linter renders in place of dispatched macros and of dbt_project.yml's vars: the shape of the SQL, not its meaning. -#}
{% macro hours_between(a, b) %}timestampdiff({{ a }}, {{ b }}){% endmacro %}
{% macro hour_index(a) %}hour_index({{ a }}){% endmacro %}
{% macro largest(a, n) %}max({{ a }}, {{ n }}){% endmacro %}
{% macro nth(a, n) %}nth({{ a }}, {{ n }}){% endmacro %}
{% macro nearest_ranks(a, ranks) %}quantile_disc({{ a }}, {{ ranks }}){% endmacro %}
{% macro var(name, default=none) %}{% if name == 'perseus_risks' %}{{ return([[1, 0], [1, 0]]) }}{% endif %}{% if name in ('explicit_event_types', 'detectors', 'sample_detectors', 'candidate_classes', 'health_clock_attributes') %}{{ return(['a', 'b']) }}{% elif name in ('event_window_hours', 'candidate_band_edges', 'candidate_top_ratios', 'perseus_events', 'perseus_ratios') %}{{ return([0, 1]) }}{% elif name.startswith('alert_') or name in ('group_past_weeks', 'chronic_window_days', 'candidate_half_life_weeks', 'candidate_training_weeks', 'candidate_interval', 'perseus_days', 'perseus_degree', 'lab_normal_requests') %}{{ return(3) }}{% elif name in ('study_edges', 'slowdown_edges') %}{{ return([1.5, 2.0]) }}{% else %}1{% endif %}{% endmacro %}
{% macro local_hour(a, b) %}local_hour({{ a }}, {{ b }}){% endmacro %}
{% macro local_weekday(a, b) %}local_weekday({{ a }}, {{ b }}){% endmacro %}
{% macro number_or_null(a) %}number_or_null({{ a }}){% endmacro %}
{% macro age_year(a, b) %}age_year({{ a }}, {{ b }}){% endmacro %}
{% macro counted(condition) %}sum(case when {{ condition }} then sign else 0 end){% endmacro %}
{% macro counted_hours(condition) %}sum(case when {{ condition }} then sign else 0 end){% endmacro %}
{% macro hour_bit(instant) %}{{ instant }}{% endmacro %}
{% macro hours_after(a, b) %}{{ a }} + {{ b }}{% endmacro %}
{% macro hour_count(a) %}hour_count({{ a }}){% endmacro %}
{% macro is_on_edge() %}value = edge_per_mille{% endmacro %}
{% macro has_hour(a, b) %}{{ a }} = {{ b }}{% endmacro %}
{% macro edge_name(edge) %}{{ (edge * 100) | int if edge is number else edge }}{% endmacro %}
{% macro bin_edge(a) %}floor({{ a }}){% endmacro %}
{% macro at_edge(x, edges, prefix) %}case {{ x }} when 1 then {{ prefix }}_1 end{% endmacro %}
{% macro reference_edges(measure) %}select class, x from measures where measure = '{{ measure }}'{% endmacro %}
{% macro student_limit(p, n) %}student_limit({{ p }}, {{ n }}){% endmacro %}
{% macro wilson_low(p, n) %}wilson({{ p }}, {{ n }}){% endmacro %}
{% macro wilson_high(p, n) %}wilson({{ p }}, {{ n }}){% endmacro %}
{% macro capped_nanoseconds(a) %}floor({{ a }}){% endmacro %}
{% macro peer_ratios() %}{{ return({'slowdown': 'a', 'rate_imbalance': 'b', 'io_size_bytes': 'f', 'size_imbalance': 'c', 'read_slowdown': 'd', 'write_slowdown': 'e'}) }}{% endmacro %}
{% macro stretches(periods, key, is_all_time=false) %}stretches as (select {{ key }}, hour_utc, next_hour_utc from {{ periods }}){% endmacro %}
{% macro nanoseconds(a) %}floor({{ a }}){% endmacro %}
{% macro is_multiple(a, b) %}{{ a }} = {{ b }}{% endmacro %}
{% macro is_in_ticks(a) %}{{ a }} = 0{% endmacro %}
{% macro is_multiple_in_ticks(a, b) %}{{ a }} = {{ b }}{% endmacro %}
{% macro as_decimal(a) %}{{ a }}{% endmacro %}
{% macro mean_of_group(a) %}avg({{ a }}){% endmacro %}
{% macro first_of_rows(n, keys, order_by) %}partition by {{ keys }} order by {{ order_by }} rows between 1 preceding and 1 preceding{% endmacro %}
{% macro raised_together(alerts) %}select *, true as is_together, 1 as chain_number from {{ alerts }}{% endmacro %}
{% macro with_returns(name, times, subject, time_number, number, again_days) %}ordered_{{ name }} as (select *, 1 as {{ number }} from {{ times }}),{% endmacro %}
{% macro source_rank(aspect, source) %}source_rank({{ source }}){% endmacro %}
{% macro is_whole_week(instant) %}{{ instant }} > timestamp '2026-01-05'{% endmacro %}
{% macro is_live(table, record) %}{{ record }}.row_no > 0{% endmacro %}
{% macro severity(a) %}severity({{ a }}){% endmacro %}
{% macro usual_median(rows) %}usual_median({{ rows }}.median_latency_us){% endmacro %}
{% macro share_estimates(clusters) %}effective as (select * from {{ clusters }})

select * from effective{% endmacro %}
{% macro merged_latency() %}latency_us{% endmacro %}
{% macro merged_io_count() %}io_count{% endmacro %}
{% macro merged_bytes() %}bytes{% endmacro %}
{% macro merged_io_size() %}bytes{% endmacro %}
{% macro io_size(bytes='a', io_count='b') %}{{ bytes }}{% endmacro %}
{% macro rounded_text(a, decimals=2) %}rounded_text({{ a }}){% endmacro %}
{% macro counted_noun(a, unit) %}counted_noun({{ a }}){% endmacro %}
{% macro is_beyond_sigma(a) %}{{ a }} > latency_sum_ns{% endmacro %}
{% macro least_outlying_slowdown() %}3{% endmacro %}
{% macro may_be_fail_slow(max_latency_us, median_latency_us) %}{{ max_latency_us }} > {{ median_latency_us }}{% endmacro %}
{% macro running_score(start, order_by, columns, step) %}max({{ columns | join(' + ') }}){% endmacro %}
{% macro sit_out_counts() %}max(sit_out_rise){% endmacro %}
{% macro tikv_score_after(a, b) %}tikv_score_after({{ a }}, {{ b }}){% endmacro %}
{% macro iaso_score_after(a, b) %}iaso_score_after({{ a }}, {{ b }}){% endmacro %}
{% macro to_tenths(a) %}cast({{ a }} as string){% endmacro %}
{% macro exclusion_reason() %}case when slowdown is null then 'no_io' end{% endmacro %}
{% macro drive_costs_by(keys) %}select {{ keys | join(', ') }} from a{% endmacro %}
{% macro tolerance_by(keys) %}select {{ keys | join(', ') }} from a{% endmacro %}
{% macro hash_ratio(text) %}hash_ratio({{ text }}){% endmacro %}
{% macro poisson_draw(ratio) %}poisson_draw({{ ratio }}){% endmacro %}
{% macro is_most_of_its_drives(a) %}{{ a }}.slow_drive_count > 1{% endmacro %}
{% macro hour_at(index) %}hour_at({{ index }}){% endmacro %}
{% macro class_weeks(key) %} select week_utc, {{ key }}, kind, model, age_year, drive_hours, slow_hours from a {% endmacro %}
{% macro window_start(instant, minutes) %}window_start({{ instant }}, {{ minutes }}){% endmacro %}
{% macro polynomial(a, degree, x) %}polynomial({{ a }}, {{ x }}){% endmacro %}
{% macro perseus_risk(a, b) %}risk_of({{ a }}, {{ b }}){% endmacro %}
{% macro joined_aliases(instant) %}left join a as aliases on delivered.drive_id = aliases.alias and aliases.from_hour_utc <= delivered.{{ instant }}{% endmacro %}
{% macro latency_rank(record) %}case when {{ record }}.source is not null then 1 else 0 end{% endmacro %}
{% macro placed_group(drive_hours, segments) %}case when {{ segments }}.is_mapped then {{ segments }}.raid_group_id else {{ drive_hours }}.raid_group_id end{% endmacro %}
{% macro given_directions(record) %}{{ record }}.read_ios is not null as is_split, {{ record }}.read_blocks is not null as has_blocks{% endmacro %}
{% macro detectors() %}select 'a' as detector, true as is_of_samples{% endmacro %}
{% macro valid_until(place) %}min(valid_to) over (partition by {{ place }}){% endmacro %}
{% macro joined_texts(text, separator) %}max({{ text }}){% endmacro %}
{% macro median_of_group(value, window=none) %}median({{ value }}){% if window %} over ({{ window }}){% endif %}{% endmacro %}
{% macro quoted(name) %}"{{ name }}"{% endmacro %}
{% macro poisson_low(n) %}poisson({{ n }}){% endmacro %}
{% macro poisson_high(n) %}poisson({{ n }}){% endmacro %}
{% macro raid_group_draws(raid_groups) %}select raid_group_id, 0 as replicate, 1 as draw_count from {{ raid_groups }}{% endmacro %}
{% macro why_no_python() %}cast(null as string){% endmacro %}
{% macro of_sample(statistic, value, condition='true') %}avg({{ value }}){% endmacro %}
{% macro satterthwaite(variance_a, n_a, variance_b, n_b) %}1.0{% endmacro %}
{% macro welch_error(a, b) %}sqrt({{ a }}.variance / {{ a }}.n + {{ b }}.variance / {{ b }}.n){% endmacro %}
{% macro welch_freedom(a, b) %}sqrt({{ a }}.variance / {{ a }}.n + {{ b }}.variance / {{ b }}.n){% endmacro %}
{% macro with_welch(relation, family, level, difference='difference') %}select *, welch_df as welch_t, welch_df as welch_p, welch_df as half_width, welch_df as holm_p from {{ relation }}{% endmacro %}
{% macro pooled_error(a, b) %}sqrt({{ a }}.variance / {{ a }}.n + {{ b }}.variance / {{ b }}.n){% endmacro %}
{% macro drive_write_counters() %}{{ return([{'name': 'a', 'side': 'host', 'bytes': 1}, {'name': 'b', 'side': 'media', 'bytes': 1}, {'name': 'c', 'side': 'pages', 'bytes': none}]) }}{% endmacro %}
{% macro ratio_half_width(mean_a, sd_a, n_a, mean_b, sd_b, n_b) %}half_width({{ mean_a }}, {{ sd_a }}, {{ n_a }}, {{ mean_b }}, {{ sd_b }}, {{ n_b }}){% endmacro %}
{% macro interval_verdict(low, high, value, above, below) %}verdict({{ low }}, {{ high }}){% endmacro %}
{% macro low_drop_of_medians(before, after) %}low_drop({{ before }}, {{ after }}){% endmacro %}
{% macro high_drop_of_medians(before, after) %}high_drop({{ before }}, {{ after }}){% endmacro %}
{% macro host_of(alias) %}host_of({{ alias }}){% endmacro %}
{% macro wide_name(drive_id) %}wide_name({{ drive_id }}){% endmacro %}
{% macro named_drives(at, described=[]) %}hosts_rows as (select *, drive_id as named_drive_id from seen_from_hosts){% endmacro %}
{% macro peer_kind(kind, interface, drive_id) %}coalesce({{ kind }}, {{ interface }}, {{ drive_id }}){% endmacro %}
{% macro peer_group(raid_group_id, kind, commonest_kind, is_guessed, is_mixed) %}coalesce({{ raid_group_id }}, {{ kind }}, {{ commonest_kind }}){% endmacro %}
{% macro behind_group(kind) %}' (' || {{ kind }} || ')'{% endmacro %}
{% macro peer_kinds() %}{{ return(['disk', 'unknown']) }}{% endmacro %}
{% macro alert_floor(peer_kind) %}coalesce({{ peer_kind }}, 1){% endmacro %}
{% macro below_the_floor() %}'below'{% endmacro %}
