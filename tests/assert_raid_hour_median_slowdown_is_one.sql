-- Slowdown divides by the group median, so each RAID-hour's median slowdown is 1 (contract, sum 3). A row here means that the median and
-- the ratios were taken over different sets of drives.
-- With an odd count the middle drive is divided by itself: exactly 1. With an even count a/m and b/m are rounded before their mean is
-- taken, which can be off by one unit in the last place (2.2e-16, in about every fifth RAID-hour): hence the tolerance.
select raid_group_id, hour_utc, {{ median_of_group('slowdown') }} as median_slowdown
from {{ ref('int_drive_hours') }}
where is_in_population and slowdown is not null
group by raid_group_id, hour_utc
having abs({{ median_of_group('slowdown') }} - 1.0) > 1e-12
