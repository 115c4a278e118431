{{ config(meta={'made': 'each_day'}) }}
{%- set model_raid_groups = 4 %}{#- a model in fewer RAID groups may show what these groups have in common -#}
-- How slow the drives of each model were in a month (UTC), beside the other models of their kind at the same age. Grain: month_utc, kind, model.
with all_months as (
{{- class_periods('drive_id', 'month') -}}
),

drive_months as (
    select * from all_months where model <> 'unknown'
),

models as (
    select
        month_utc, kind, model,
        count(distinct drive_id) as drive_count,
        count(distinct case when slow_hours > 0 then drive_id end) as slow_drive_count,
        cast(sum(day_count) as bigint) as drive_days
    from drive_months
    group by month_utc, kind, model
),

ages as (
    select
        month_utc, kind, model, age_year,
        cast(sum(drive_hours) as bigint) as drive_hours,
        cast(sum(slow_hours) as bigint) as slow_hours
    from drive_months
    group by month_utc, kind, model, age_year
),

-- the other models of the kind at the same age; who knows how alike drives of unknown age are
beside_others as (
    select
        *,
        (sum(drive_hours) over age_class) - drive_hours as other_drive_hours,
        (sum(slow_hours) over age_class) - slow_hours as other_slow_hours,
        age_year <> 'unknown' and (sum(drive_hours) over age_class) > drive_hours as is_comparable
    from ages
    window age_class as (partition by month_utc, kind, age_year)
),

-- Mantel and Haenszel: strata are years of age. Whole billionths, so that the order of the rows leaves no trace
stratified_months as (
    select
        month_utc, kind, model,
        cast(sum(case when is_comparable then drive_hours else 0 end) as bigint) as comparable_drive_hours,
        sum(case when is_comparable then {{ billionths('slow_hours', 'other_drive_hours') }} end) as own_weight,
        sum(case when is_comparable then {{ billionths('other_slow_hours', 'drive_hours') }} end) as other_weight
    from beside_others
    group by month_utc, kind, model
)

select
    models.month_utc, models.kind, models.model, models.drive_count, models.slow_drive_count,
    shares.cluster_count as raid_group_count,
    models.drive_days,
    shares.denominator as drive_hours,
    shares.numerator as slow_hours,
    shares.share as slow_ratio,
    shares.share_low as slow_ratio_low,
    shares.share_high as slow_ratio_high,
    stratified_months.comparable_drive_hours,
    cast(stratified_months.own_weight as double) / nullif(cast(stratified_months.other_weight as double), 0.0) as age_adjusted_ratio,
    case
        when stratified_months.comparable_drive_hours = 0
            then 'no other model of this kind has drives of its age: model and age cannot be told apart'
        when shares.cluster_count < {{ model_raid_groups }}
            then 'in fewer than {{ model_raid_groups }} RAID groups: model and RAID group cannot be told apart'
        when stratified_months.comparable_drive_hours < shares.denominator
            then 'only part of its drive-hours are at ages that other models of this kind have; age_adjusted_ratio is of those'
    end as confounded_by
from models
inner join stratified_months on models.month_utc = stratified_months.month_utc and models.kind = stratified_months.kind and models.model = stratified_months.model
inner join {{ ref('int_classes__shares') }} as shares
    on shares.measure = 'model_month'
    and models.month_utc = {{ hour_at('shares.x') }}
    and models.kind = shares.kind
    and models.model = shares.class
