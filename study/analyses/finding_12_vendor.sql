-- Finding 12: does it matter who made it? SSDs of each flash cell by vendor: share of the drives, and drive-hours below 1.5x.
select
    drives.flash_cell, drives.vendor,
    count(distinct drive_hours.drive_id) as drive_count,
    sum(count(distinct drive_hours.drive_id)) over (partition by drives.flash_cell) as flash_cell_drive_count,
    count(*) as drive_hours,
    count(case when drive_hours.slowdown < 1.5 then 1 end) as below_1_5x,
    100.0 * count(case when drive_hours.slowdown < 1.5 then 1 end) / count(*) as percentile_of_1_5x
from marts.fct_drive_hours as drive_hours
inner join marts.dim_drives as drives on drive_hours.drive_id = drives.drive_id
where drives.kind = 'ssd' and drives.model is not null and drives.flash_cell is not null and drives.vendor is not null and drive_hours.slowdown is not null
group by drives.flash_cell, drives.vendor
order by drives.flash_cell asc, drive_count desc, drives.vendor asc
