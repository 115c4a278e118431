-- Composition of the fleet: ages, models, flash cells, widths: hits of total by RAID group. Grain: measure, class, x, kind, cluster_id.
with drives as (
    select *, coalesce(current_raid_group_id, drive_id) as cluster_id from {{ ref('int_study__drives') }}
),

ages as (
    select 'years 1 to 2' as class, 1 as first_year, 2 as last_year
    union all
    select 'years 3 to 4' as class, 3 as first_year, 4 as last_year
{%- for year in range(1, 11) %}
    union all
    select 'year {{ year }}' as class, {{ year }} as first_year, {{ year }} as last_year
{%- endfor %}
),

cells as (
    select distinct class from {{ ref('study_measures') }} where measure = 'flash_cell'
)

select
    'age_year' as measure,
    ages.class,
    cast(null as double) as x,
    drives.kind, drives.cluster_id,
    count(case when drives.first_age_year between ages.first_year and ages.last_year then 1 end) as hits,
    count(*) as total
from drives
cross join ages
where drives.first_age_year is not null
group by ages.class, drives.kind, drives.cluster_id
union all
select
    'model_known' as measure,
    'all' as class,
    cast(null as double) as x,
    kind, cluster_id,
    count(model) as hits,
    count(*) as total
from drives
group by kind, cluster_id
union all
select
    'flash_cell' as measure,
    cells.class,
    cast(null as double) as x,
    drives.kind, drives.cluster_id,
    count(case when drives.flash_cell = cells.class then 1 end) as hits,
    count(*) as total
from drives
cross join cells
where drives.model is not null
group by cells.class, drives.kind, drives.cluster_id
union all
select
    'vendor' as measure,
    vendors.class,
    cast(null as double) as x,
    classes.kind,
    coalesce(drives.current_raid_group_id, classes.drive_id) as cluster_id,
    count(case when classes.vendor_class = vendors.class then 1 end) as hits,
    count(*) as total
from {{ ref('int_study__drive_classes') }} as classes
inner join drives on classes.drive_id = drives.drive_id
inner join (select distinct kind, flash_cell, vendor_class as class from {{ ref('int_study__drive_classes') }} where vendor_class is not null) as vendors
    on classes.kind = vendors.kind and classes.flash_cell = vendors.flash_cell
where drives.vendor is not null
group by vendors.class, classes.kind, coalesce(drives.current_raid_group_id, classes.drive_id)
union all
select
    'raid_level' as measure,
    levels.class,
    cast(null as double) as x,
    raid_groups.kind,
    raid_groups.raid_group_id as cluster_id,
    case when lower(replace(replace(replace(raid_groups.raid_level, '-', ''), ' ', ''), '_', '')) = levels.class then 1 else 0 end as hits,
    1 as total
from {{ source('intermediate', 'int_raid_groups') }} as raid_groups
cross join (select distinct class from {{ ref('study_measures') }} where measure = 'raid_level') as levels
where raid_groups.data_drive_count is not null and raid_groups.raid_level is not null
union all
select
    'width' as measure,
    'all' as class,
    edges.x,
    raid_groups.kind,
    raid_groups.raid_group_id as cluster_id,
    case when raid_groups.data_drive_count <= edges.x then 1 else 0 end as hits,
    1 as total
from {{ source('intermediate', 'int_raid_groups') }} as raid_groups
cross join ({{ reference_edges('width') }}) as edges
where raid_groups.data_drive_count is not null
