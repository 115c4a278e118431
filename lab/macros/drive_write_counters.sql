{#- Counters of what was written: whether by the host or to the flash, and the bytes of one. Of several of one side the first counts. -#}
{% macro drive_write_counters() -%}
{{ return([
    {'name': 'data_units_written', 'side': 'host', 'bytes': 512000},
    {'name': 'Total_LBAs_Written', 'side': 'host', 'bytes': 512},
    {'name': 'Host_Writes_32MiB', 'side': 'host', 'bytes': 33554432},
    {'name': 'physical_media_units_written', 'side': 'media', 'bytes': 1},
    {'name': 'NAND_Writes_1GiB', 'side': 'media', 'bytes': 1073741824},
    {'name': 'NAND_Writes_32MiB', 'side': 'media', 'bytes': 33554432},
    {'name': 'NAND_Writes', 'side': 'media', 'bytes': 512},
    {'name': 'Host_Program_Page_Count', 'side': 'pages', 'bytes': none},
    {'name': 'FTL_Program_Page_Count', 'side': 'pages', 'bytes': none},
    {'name': 'Bckgnd_Program_Page_Cnt', 'side': 'pages', 'bytes': none}
]) }}
{%- endmacro %}
