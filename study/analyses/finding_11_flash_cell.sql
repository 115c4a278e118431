-- Finding 11: are SSDs that keep more bits in a cell slower? Drive-hours below 1.5x and 2x, by flash cell.
select
    drives.flash_cell,
    count(distinct drive_hours.drive_id) as drive_count,
    count(*) as drive_hours,
    count(case when drive_hours.slowdown < 1.5 then 1 end) as below_1_5x,
    100.0 * count(case when drive_hours.slowdown < 1.5 then 1 end) / count(*) as percentile_of_1_5x,
    count(case when drive_hours.slowdown < 2 then 1 end) as below_2x,
    100.0 * count(case when drive_hours.slowdown < 2 then 1 end) / count(*) as percentile_of_2x
from marts.fct_drive_hours as drive_hours
inner join marts.dim_drives as drives on drive_hours.drive_id = drives.drive_id
where drives.kind = 'ssd' and drives.model is not null and drives.flash_cell is not null and drive_hours.slowdown is not null
group by drives.flash_cell
order by drives.flash_cell asc
