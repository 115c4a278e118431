-- Flash cells of drives, and the two largest vendors of a cell. Grain: drive_id.
with vendors as (
    select
        kind, flash_cell, vendor,
        row_number() over (partition by kind, flash_cell order by count(*) desc, vendor asc nulls last) as vendor_rank
    from {{ ref('int_study__drives') }}
    where flash_cell is not null and vendor is not null and model is not null
    group by kind, flash_cell, vendor
)

select
    drives.drive_id, drives.kind, drives.deployed_on,
    -- cells and vendors are those of drives with model information
    case when drives.model is not null then drives.flash_cell end as flash_cell,
    case
        when vendors.vendor_rank = 1 then drives.flash_cell || ' (Vendor A)'
        when vendors.vendor_rank = 2 then drives.flash_cell || ' (Vendor B)'
    end as vendor_class
from {{ source('intermediate', 'int_drives') }} as drives
left join vendors
    on drives.kind = vendors.kind
    and drives.flash_cell = vendors.flash_cell
    and drives.vendor = vendors.vendor
    and drives.model is not null
