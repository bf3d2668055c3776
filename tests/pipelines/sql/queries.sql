select agv(amount) from orders
select avg(amount) from orders
select customer, avg(amount) from orders
select customer, avg(amount) as a from orders group by customer
select customer, amount from orders group by customer
select amount.value from orders
select address.city from orders
select address.city.name from orders
select address.geo.lat from orders
select address.geo.lat.x from orders
select o.address.geo.lon from orders o
select o.amount.x from orders o
select tags.x from orders
select lines.sku from orders
select lines.sku[0] from orders
select lines[0].sku from orders
select lines[0].sku.x from orders
select attributes.color from orders
select attributes['color'] from orders
select attributes['color'].x from orders
select tags[0] from orders
select tags['a'] from orders
select amount[0] from orders
select customer[0] from orders
select address['city'] from orders
select id from orders where amount
select id from orders where customer
select id from orders where is_paid
select id from orders where not amount
select id from orders where not is_paid and amount
select id from orders where is_paid and amount > 1
select id from orders where sum(amount) > 1
select customer from orders where count(*) > 1 group by customer
select customer from orders group by customer having count(*) > 1
select customer from orders having count(*) > 1
select count(*) from orders having count(*) > 1
select amount from orders having amount > 1
select customer, sum(amount) as amount from orders group by customer having amount > 10
select customer, sum(amount) as total from orders group by customer having total > 10
select customer, sum(amount) as total from orders group by customer having quantity > 10
select sum(max(amount)) from orders
select max(sum(amount)) over () from orders
select sum(max(amount)) over (partition by customer) from orders group by customer
select sum(amount) over (partition by customer) from orders
select row_number() from orders
select row_number() over (order by at) from orders
select rank() over (partition by customer order by at) as r from orders
select upper(customer) over (partition by day) from orders
select lag(amount) from orders
select lag(amount) over (order by at) from orders
select upper(customer) from orders
select upper(tags) from orders
select upper(amount) from orders
select upper(address) from orders
select upper(customer, 1) from orders
select upper() from orders
select lower(customer) || amount from orders
select customer || tags from orders
select tags || array('x') from orders
select amount + customer from orders
select amount + address from orders
select amount * tags from orders
select amount + is_paid from orders
select at + 1 from orders
select day + 1 from orders
select day - day from orders
select at - at from orders
select at - interval 1 hour from orders
select day + interval 1 day from orders
select at + customer from orders
select -customer from orders
select -tags from orders
select -is_paid from orders
select amount / 0 from orders
select quantity div 2 from orders
select amount div 2 from orders
select quantity % 2 from orders
select quantity & 1 from orders
select amount & 1 from orders
select is_paid & true from orders
select id from orders where amount = address
select id from orders where tags = 'a'
select id from orders where tags = array('a')
select id from orders where at > '2026-01-01'
select id from orders where at > 5
select id from orders where day > at
select id from orders where day = 'x'
select id from orders where is_paid = 'true'
select id from orders where is_paid = 1
select id from orders where customer = 1
select id from orders where customer = amount
select id from orders where payload = 'x'
select id from orders where address = address
select id from orders where attributes = attributes
select id from orders where attributes <=> attributes
select id from orders where address.geo = address
select id from orders where customer like 'a%'
select id from orders where amount like '1%'
select id from orders where tags like 'a%'
select id from orders where customer rlike '^a'
select id from orders where tags rlike 'a'
select id from orders where amount between 1 and 2
select id from orders where amount between 'a' and 'b'
select id from orders where at between '2026-01-01' and '2026-02-01'
select id from orders where at between 1 and 2
select id from orders where amount in (1, 2)
select id from orders where tags in ('a')
select id from orders where customer in ('a', 'b')
select id from orders where customer in (1, 2)
select id from orders where address in (1)
select id from orders where amount is null
select id from orders where address.zip is not null
select case when amount > 1 then 'a' else 'b' end from orders
select case when amount then 'a' else 'b' end from orders
select case when is_paid then 'a' else tags end from orders
select case when is_paid then amount else quantity end from orders
select case when is_paid then amount else customer end from orders
select case customer when 'a' then 1 end from orders
select case customer when 'a' then 1 else address end from orders
select if(is_paid, amount, 0) from orders
select if(amount, 1, 0) from orders
select if(is_paid, amount, tags) from orders
select coalesce(amount, 0) from orders
select coalesce(customer, 0) from orders
select coalesce(tags, 0) from orders
select coalesce(tags, array()) from orders
select coalesce(address, 'x') from orders
select nvl(amount, 'x') from orders
select nvl(tags, 1) from orders
select greatest(amount, quantity) from orders
select greatest(amount, tags) from orders
select greatest(attributes, attributes) from orders
select cast(amount as string) from orders
select cast(tags as int) from orders
select cast(address as double) from orders
select cast(tags as string) from orders
select cast(at as int) from orders
select cast(at as bigint) from orders
select cast(is_paid as timestamp) from orders
select cast(day as int) from orders
select cast(payload as int) from orders
select cast(customer as timestamp) from orders
select amount::int from orders
select tags::int from orders
select explode(tags) from orders
select explode(tags) as tag from orders
select explode(amount) from orders
select explode(customer) as c from orders
select explode(attributes) from orders
select explode(attributes) as (k, v) from orders
select explode(address) from orders
select explode(tags) + 1 from orders
select upper(explode(tags)) from orders
select id from orders where explode(tags) = 'a'
select posexplode(tags) as (i, t) from orders
select inline(lines) from orders
select inline(tags) from orders
select id, t from orders lateral view explode(tags) x as t
select id, t from orders lateral view explode(amount) x as t
select id, t from orders lateral view explode(lines) x as t
select id, upper(t) from orders lateral view explode(tags) x as t
select id, t.sku from orders lateral view explode(lines) x as t
select t, count(*) from orders lateral view explode(tags) x as t group by t
select id, count(*) from orders lateral view explode(tags) x as t group by t
select size(tags) from orders
select size(amount) from orders
select array_contains(tags, 'a') from orders
select array_contains(tags, 1) from orders
select array_contains(amount, 1) from orders
select transform(tags, x -> upper(x)) from orders
select transform(amount, x -> x) from orders
select filter(lines, l -> l.count > 1) from orders
select exists(tags, t -> t = 'a') from orders
select aggregate(tags, 0, (a, t) -> a + 1) from orders
select map_keys(attributes) from orders
select map_keys(tags) from orders
select element_at(tags, 1) from orders
select element_at(attributes, 'a') from orders
select element_at(attributes, 1) from orders
select to_json(address) from orders
select to_json(amount) from orders
select to_json(struct(*)) from orders
select from_json(customer, 'a INT').a from orders
select from_json(amount, 'a INT') from orders
select get_json_object(customer, '$.a') from orders
select get_json_object(address, '$.a') from orders
select year(at) from orders
select year(customer) from orders
select year(amount) from orders
select year(tags) from orders
select date_trunc('hour', at) from orders
select date_trunc('hour', amount) from orders
select date_trunc(at) from orders
select date_format(at, 'yyyy') from orders
select date_format(amount, 'yyyy') from orders
select to_timestamp(customer) from orders
select to_timestamp(amount) from orders
select to_timestamp(tags) from orders
select to_date(at) from orders
select to_date(address) from orders
select date_add(day, 1) from orders
select date_add(day, 'x') from orders
select date_add(amount, 1) from orders
select date_add(day) from orders
select dateadd(day, 1, at) from orders
select datediff(day, day) from orders
select datediff(hour, at, at) from orders
select date_diff(day, at, at) from orders
select timestampdiff(minute, at, at) from orders
select unix_timestamp(at) from orders
select unix_timestamp(amount) from orders
select from_unixtime(id) from orders
select from_unixtime(tags) from orders
select round(amount, 1) from orders
select round(customer, 1) from orders
select round(tags) from orders
select round(amount, quantity) from orders
select abs(amount) from orders
select abs(tags) from orders
select abs(at) from orders
select sqrt(address) from orders
select pow(amount, 2) from orders
select pow(amount) from orders
select length(customer) from orders
select length(amount) from orders
select length(tags) from orders
select substring(customer, 1, 2) from orders
select substring(customer from 1 for 2) from orders
select substring(tags, 1, 2) from orders
select substr(amount, 1) from orders
select trim(customer) from orders
select trim(both 'x' from customer) from orders
select replace(customer, 'a', 'b') from orders
select replace(customer) from orders
select split(customer, ',') from orders
select split(customer, ',')[0] from orders
select split(customer, ',').x from orders
select split(tags, ',') from orders
select concat(customer, amount) from orders
select concat(tags, array('x')) from orders
select concat(tags, 'x') from orders
select concat(address, 'x') from orders
select concat_ws(',', tags) from orders
select concat_ws(',', customer, 'b') from orders
select concat_ws(',', address) from orders
select format_number(amount, 2) from orders
select format_string('%s', amount) from orders
select md5(customer) from orders
select md5(amount) from orders
select hash(customer, amount) from orders
select hash(attributes) from orders
select sum(amount) from orders
select sum(customer) from orders
select sum(tags) from orders
select sum(is_paid) from orders
select sum(at) from orders
select avg(at) from orders
select avg(day) from orders
select max(tags) from orders
select max(attributes) from orders
select max(address) from orders
select max(address).city from orders
select min(at) from orders
select count(amount, customer) from orders
select count() from orders
select count(distinct customer, amount) from orders
select count(distinct attributes) from orders
select collect_list(amount) from orders
select collect_set(attributes) from orders
select first(amount), customer from orders
select first(amount), first(customer) from orders
select stddev(amount) from orders
select stddev(tags) from orders
select percentile_approx(amount, 0.5) from orders
select percentile_approx(tags, 0.5) from orders
select approx_count_distinct(customer) from orders
select sum(amount) filter (where is_paid) from orders
select sum(amount) filter (where amount) from orders
select any(is_paid), some(is_paid), every(is_paid) from orders
select any(amount) from orders
select customer, any(is_paid) from orders group by customer
select bool_and(amount > 1) from orders
select count_if(is_paid) from orders
select count_if(amount) from orders
select max_by(customer, amount) from orders
select max_by(customer, attributes) from orders
select customer, day, count(*) from orders group by customer, day
select customer, day, count(*) from orders group by 1, 2
select customer, day, count(*) from orders group by customer
select upper(customer), count(*) from orders group by upper(customer)
select customer, count(*) from orders group by upper(customer)
select upper(customer) as u, count(*) from orders group by u
select amount + quantity, count(*) from orders group by amount + quantity
select quantity + amount, count(*) from orders group by amount + quantity
select amount + 1, count(*) from orders group by amount
select amount + quantity, count(*) from orders group by amount
select address.city, count(*) from orders group by address.city
select address.city, count(*) from orders group by address
select address.zip, count(*) from orders group by address.city
select o.customer, count(*) from orders o group by customer
select customer, count(*) from orders o group by o.customer
select *, count(*) from orders group by customer
select count(*) from orders group by attributes
select count(*) from orders group by tags
select customer, count(*) from orders group by all
select customer, day, sum(amount) from orders group by rollup (customer, day)
select customer, day, sum(amount) from orders group by cube (customer, day)
select customer, sum(amount) from orders group by sum(amount)
select customer, 1, 'x', current_date(), sum(amount) from orders group by customer
select customer, rand(), sum(amount) from orders group by customer
select customer, case when customer = 'a' then 1 end, sum(amount) from orders group by customer
select customer, case when amount > 1 then 1 end, sum(amount) from orders group by customer
select customer, sum(amount) / count(*) as mean, max(at) - min(at) from orders group by customer
select customer, sum(amount) + quantity from orders group by customer
select distinct customer, amount from orders
select distinct customer, sum(amount) from orders
select customer from orders group by customer order by max(at)
select customer, sum(amount) over (partition by customer) from orders group by customer
select window(at, '1 minute'), count(*) from orders group by window(at, '1 minute')
select window.start, count(*) from orders group by window(at, '1 minute')
select window.start, customer, count(*) from orders group by window(at, '1 minute')
select count(*) from orders group by window(amount, '1 minute')
select count(*) from orders group by window(at, '1 minute', '30 seconds')
select session_window.start, count(*) from orders group by session_window(at, '5 minutes')
select count(*) from orders group by session_window(customer, '5 minutes')
select count(*) from orders group by session_window(day, '5 minutes')
select id from orders join customers on orders.id = customers.id
select orders.id from orders join customers on orders.id = customers.id
select orders.id, name from orders join customers on orders.id = customers.id
select o.id, c.name from orders o join customers c on o.id = c.name
select o.id, c.name from orders o join customers c on o.id = c.address
select o.id, c.name from orders o join customers c on o.customer
select o.id, c.name from orders o join customers c on o.at = c.since
select o.id, c.name from orders o join customers c on o.tags = c.tags
select id, name from orders join customers using (id)
select id, name from orders join customers using (address)
select id, name from orders join customers using (tags)
select address.city from orders join customers using (id)
select id from orders left semi join customers on orders.id = customers.id
select name from orders left semi join customers on orders.id = customers.id
select amount from orders natural join rates
select o.id from orders o, customers c where o.id = c.id
select id from orders o cross join rates r
select at from orders o cross join rates r
select o.amount * r.rate from orders o join rates r on o.at >= r.at
select x.id from orders o
select o.nothing from orders o
select nothing from orders
select orders.id from orders o
select id, customer from orders union all select id, name from customers
select id from orders union all select id, name from customers
select id, tags from orders union all select id, name from customers
select id, amount from orders union all select id, score from customers
select id, address from orders union all select id, address from customers
select at from orders union all select name from customers
select at from orders union all select since from customers
select is_paid from orders union all select score from customers
select id from orders intersect select name from customers
select id from orders except select tags from customers
select * from orders union all select * from customers
select id, name from customers union all select * from rates
select * from (select id, amount from orders) where amount > 1
select * from (select id, amount from orders) where amount.x > 1
select * from (select id, agv(amount) from orders)
select t.total.x from (select sum(amount) as total from orders) t
select t.total from (select sum(amount) as total from orders) t
select t.c.city from (select struct(customer as city, id) as c from orders) t
select t.c.town from (select struct(customer as city, id) as c from orders) t
select t.c.city.x from (select named_struct('city', customer) as c from orders) t
select t.a[0].x from (select array(amount, 1.0D) as a from orders) t
with t as (select customer, sum(amount) as s from orders group by customer) select s + 1 from t
with t as (select customer, sum(amount) as s from orders group by customer) select s.x from t
with t as (select customer, sum(amount) as s from orders) select s from t
with t as (select upper(customer) as u from orders) select u + tags from t, customers
with t(a, b) as (select id, customer from orders) select a, upper(b) from t
select id from orders where id in (select id from customers)
select id from orders where id in (select id, name from customers)
select id from orders where exists (select 1 from customers c where c.id = orders.id)
select (select max(score) from customers) as m, id from orders
select (select id, name from customers) as m from orders
select id from orders where amount > (select avg(amount) from orders)
select id from orders where amount > (select agv(amount) from orders)
select id as x, x + 1 as y from orders
select customer as x, x + address as y from orders
select amount as a, a.b from orders
select id from orders order by amount
select id from orders order by attributes
select id from orders limit 5
select struct(id, amount).id from orders
select named_struct('a', 1).a from orders
select named_struct('a') from orders
select array(1, 'a') from orders
select array(1, tags) from orders
select map('a', 1)['a'] from orders
select map('a') from orders
select try_cast(customer as int) + 1 from orders
select extract(year from at) from orders
select extract(year from amount) from orders
select current_timestamp() - at from orders
select current_timestamp > at from orders
select now() from orders
select date '2026-01-01' + 1 from orders
select timestamp '2026-01-01' > at from orders
select payload || 'x' from orders
select decode(payload, 'UTF-8') from orders
select encode(amount, 'UTF-8') from orders
select base64(payload) from orders
select base64(amount) from orders
select unbase64(tags) from orders
select sha2(customer, 256) from orders
select sha2(customer) from orders
select isnull(address) from orders
select isnan(amount) from orders
select isnan(customer) from orders
select isnan(tags) from orders
select ceil(amount), floor(price), ceiling(quantity) from orders
select ceil(tags) from orders
select log(amount), ln(amount), exp(amount) from orders
select log(customer) from orders
select least(at, day) from orders
select least(at, 1) from orders
select nullif(amount, 0) from orders
select nullif(tags, 0) from orders
select sort_array(tags) from orders
select sort_array(amount) from orders
select array_join(tags, ',') from orders
select array_join(customers.tags, ',') from customers
select array_join(name, ',') from customers
select flatten(array(tags)) from orders
select flatten(tags) from orders
select arrays_zip(tags, lines) from orders
select slice(tags, 1, 2) from orders
select reverse(customer), reverse(tags) from orders
select reverse(address) from orders
select weight + 1, weight || 'a', -weight, small + 1, -small from orders
select weight.x from orders
select small.x from orders
select upper(weight), upper(small) from orders
select year(weight) from orders
select explode(weight) from orders
select price.x from orders
select price * 1.5 + quantity from orders
select sum(price) + avg(price) from orders
select sum(price).x from orders
select price = customer, price = tags from orders
select price > 1.5 from orders
select price > address from orders
select crc32(customer), crc32(payload) from orders
select crc32(amount) from orders
select initcap(customer), initcap(tags) from orders
select levenshtein(customer, 'a') from orders
select levenshtein(customer) from orders
select uuid() from orders
select uuid(1, 2, 3) from orders
select monotonically_increasing_id() from orders
select lenght(customer) from orders
select to_timstamp(customer) from orders
select count_distinct(customer) from orders
select string(amount), int(customer), double(amount), timestamp(customer), date(at), boolean(quantity) from orders
select int(tags) from orders
select string(tags) from orders
select bigint(at) from orders
select * except (payload) from orders
select id, * from orders
select orders.* from orders
select o.* from orders o where o.amount > 1 and o.is_paid
select address.* from orders
select tags.* from orders
select amount.* from orders
select mode(customer) from orders
select median(amount) from orders
select median(tags) from orders
select percentile_cont(0.5) within group (order by amount) from orders
select listagg(customer, ',') from orders
select string_agg(customer, ',') from orders
select approx_percentile(amount, array(0.5, 0.9)) from orders
select corr(amount, quantity) from orders
select corr(amount, tags) from orders
select histogram_numeric(amount, 5) from orders
select schema_of_json('{"a": 1}') from orders
select json_tuple(customer, 'a', 'b') as (a, b) from orders
select stack(2, 'a', amount, 'b', weight) as (k, v) from orders
select stack(2, 'a', amount, 'b', tags) as (k, v) from orders
select bround(amount, 1), rint(amount), sign(amount) from orders
select sign(customer) from orders
select sign(tags) from orders
select lpad(customer, 10, ' '), rpad(amount, 10) from orders
select lpad(tags, 10) from orders
select instr(customer, 'a'), locate('a', customer), position('a' in customer) from orders
select instr(tags, 'a') from orders
select months_between(at, day), add_months(day, 1), last_day(day), next_day(day, 'MON') from orders
select add_months(amount, 1) from orders
select hour(at), minute(at), second(at), dayofweek(day), weekofyear(day), quarter(day) from orders
select hour(is_paid) from orders
select hour(address) from orders
select make_date(2026, 1, 1), make_timestamp(2026, 1, 1, 0, 0, 0) from orders
select make_date(2026, 1) from orders
select parse_json(customer) from orders
select variant_get(parse_json(customer), '$.a', 'int') from orders
select zip_with(tags, tags, (a, b) -> a || b) from orders
select map_filter(attributes, (k, v) -> v = 'x') from orders
select map_filter(tags, (k, v) -> v = 'x') from orders
select a.customer, count(*) from orders a join customers b on a.id = b.id group by a.customer
select a.customer, b.name, count(*) from orders a join customers b on a.id = b.id group by a.customer
select b.name, sum(a.amount) from orders a join customers b using (id) group by name
select count(*) as n, max(n) from orders
select 'a' + 1 from orders
select 'a' * tags from orders
select true + 1 from orders
select 1 = 'a', 1 = true, 1.5 = '1' from orders
select null + 1, null = tags, coalesce(null, tags) from orders
