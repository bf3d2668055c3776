"""Functions of Spark that may be computed as columns of one pass.

Each returns one value for each row that depends on the values of its arguments only, and not on how often, in which
order or under which name they are computed. Hence none is an aggregate, a window function or a generator, none is
random, none raises an error on purpose, and none names its result after its arguments (`struct` is rewritten). The
clock's functions are the same for all rows of a batch. A function that is missing here is computed by a query.
"""

from __future__ import annotations

CLOCK = "curdate current_date current_timestamp localtimestamp now unix_timestamp to_unix_timestamp"
CONDITIONS = "coalesce equal_null if ifnull isnan isnotnull isnull nullif nullifzero nvl nvl2 zeroifnull"
NUMBERS = """abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot
csc degrees e exp expm1 factorial floor getbit greatest hex hypot least ln log log10 log1p log2 mod negative pi pmod
positive pow power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh
try_add try_divide try_mod try_multiply try_subtract unhex width_bucket"""
CASTS = "bigint binary boolean date decimal double float int smallint string timestamp tinyint"
TEXT = """ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode elt
encode endswith find_in_set format_number format_string ilike initcap instr is_valid_utf8 lcase left len length
levenshtein like locate lower lpad ltrim luhn_check make_valid_utf8 mask octet_length overlay position printf quote
regexp regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat
replace reverse right rlike rpad rtrim sentences soundex space split split_part startswith substr substring
substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number try_validate_utf8
ucase unbase64 upper url_decode url_encode try_url_decode validate_utf8 parse_url try_parse_url"""
HASHES = "crc32 hash md5 sha sha1 sha2 xxhash64"
TIMES = """add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear from_unixtime from_utc_timestamp hour last_day
make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute
month monthname months_between next_day quarter second timestamp_micros timestamp_millis timestamp_seconds to_date
to_timestamp to_timestamp_ltz to_timestamp_ntz to_utc_timestamp trunc try_make_interval try_make_timestamp try_to_date
try_to_timestamp unix_date unix_micros unix_millis unix_seconds weekday weekofyear year"""
NESTED = """aggregate array array_append array_compact array_contains array_distinct array_except array_insert
array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat array_size
array_sort array_union arrays_overlap cardinality element_at exists filter flatten forall get map map_concat
map_contains_key map_entries map_filter map_from_arrays map_from_entries map_keys map_values map_zip_with named_struct
reduce sequence size slice sort_array str_to_map struct transform transform_keys transform_values try_element_at
zip_with"""
FORMATS = """from_csv from_json get_json_object is_variant_null json_array_length json_object_keys parse_json
schema_of_csv schema_of_json to_csv to_json to_variant_object try_parse_json try_variant_get variant_get xpath
xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number xpath_short xpath_string"""

SAFE_FUNCTIONS = frozenset(
    name
    for names in (CLOCK, CONDITIONS, NUMBERS, CASTS, TEXT, HASHES, TIMES, NESTED, FORMATS)
    for name in names.split()
)
