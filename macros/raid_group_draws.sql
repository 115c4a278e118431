{#- How often each RAID group of a relation is drawn in each replicate of a bootstrap: raid_group_id, replicate, draw_count. Seeded by the group's
    name only, so the same in every build and whatever other groups there are. -#}
{% macro raid_group_draws(raid_groups) -%}
with digits as (
{%- for digit in range(10) %}
    select {{ digit }} as digit{{ "
    union all" if not loop.last }}
{%- endfor %}
),

replicates as (
    select 100 * hundreds.digit + 10 * tens.digit + ones.digit as replicate
    from digits as hundreds
    cross join digits as tens
    cross join digits as ones
    where 100 * hundreds.digit + 10 * tens.digit + ones.digit < {{ var('bootstrap_replicates') }}
),

ranks as (
    select
        raid_groups.raid_group_id,
        replicates.replicate,
        {{ hash_ratio("raid_groups.raid_group_id || ' ' || cast(replicates.replicate as string)") }} as ratio
    from {{ raid_groups }} as raid_groups
    cross join replicates
)

select raid_group_id, replicate, {{ poisson_draw('ratio') }} as draw_count
from ranks
{%- endmacro %}
