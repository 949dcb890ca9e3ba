accounts.project text COLLATE "C" NOT NULL
accounts.id text COLLATE "C" NOT NULL
accounts.name text COLLATE "C" NOT NULL
accounts.balance bigint NOT NULL
accounts.held bigint NOT NULL
accounts.revision bigint NOT NULL
accounts.created_at bigint NOT NULL
api_keys.id text COLLATE "C" NOT NULL
api_keys.project text COLLATE "C" NOT NULL
api_keys.hash bytea NOT NULL
api_keys.name text COLLATE "C" NOT NULL
api_keys.role text COLLATE "C" NOT NULL
api_keys.may_script boolean NOT NULL
api_keys.scope text COLLATE "C" NOT NULL
api_keys.created_at bigint NOT NULL
api_keys.created_by text COLLATE "C" NOT NULL
api_keys.expires_at bigint
api_keys.revoked_at bigint
api_keys.used_at bigint
attempts.job uuid NOT NULL
attempts.number bigint NOT NULL
attempts.fence bigint NOT NULL
attempts.status text COLLATE "C" NOT NULL
attempts.worker text COLLATE "C"
attempts.created_at bigint NOT NULL
attempts.started_at bigint
attempts.finished_at bigint
attempts.result text COLLATE "C"
attempts.error text COLLATE "C"
attempts.next_retry_at bigint
audit.project text COLLATE "C" NOT NULL
audit.seq bigint NOT NULL
audit.at bigint NOT NULL
audit.who text COLLATE "C" NOT NULL
audit.what text COLLATE "C" NOT NULL
audit.subject text COLLATE "C" NOT NULL
audit.detail text COLLATE "C" NOT NULL
audit.hash bytea NOT NULL
audit_heads.project text COLLATE "C" NOT NULL
audit_heads.seq bigint NOT NULL
audit_heads.hash bytea NOT NULL
blob_refs.project text COLLATE "C" NOT NULL
blob_refs.hash text COLLATE "C" NOT NULL
blob_refs.run uuid NOT NULL
blobs.project text COLLATE "C" NOT NULL
blobs.hash text COLLATE "C" NOT NULL
blobs.bytes bytea NOT NULL
bulk_failures.bulk uuid NOT NULL
bulk_failures.no bigint NOT NULL
bulk_failures.failure text COLLATE "C" NOT NULL
bulk_targets.bulk uuid NOT NULL
bulk_targets.part bigint NOT NULL
bulk_targets.targets text COLLATE "C" NOT NULL
bulks.id uuid NOT NULL
bulks.project text COLLATE "C" NOT NULL
bulks.rev bigint NOT NULL
bulks.state text COLLATE "C" NOT NULL
bulks.ended_at bigint
commands.project text COLLATE "C" NOT NULL
commands.id uuid NOT NULL
commands.at bigint NOT NULL
commands.balances text COLLATE "C"
firings.schedule uuid NOT NULL
firings.slot bigint NOT NULL
firings.is_manual boolean NOT NULL
firings.is_run boolean NOT NULL
firings.started uuid NOT NULL
firings.is_running boolean NOT NULL
flow_names.project text COLLATE "C" NOT NULL
flow_names.name text COLLATE "C" NOT NULL
job_keys.project text COLLATE "C" NOT NULL
job_keys.queue text COLLATE "C" NOT NULL
job_keys.key text COLLATE "C" NOT NULL
job_keys.job uuid NOT NULL
job_specs.job uuid NOT NULL
job_specs.spec text COLLATE "C" NOT NULL
job_specs.payload text COLLATE "C" NOT NULL
jobs.project text COLLATE "C" NOT NULL
jobs.id uuid NOT NULL
jobs.rev bigint NOT NULL
jobs.queue text COLLATE "C" NOT NULL
jobs.name text COLLATE "C" NOT NULL
jobs.priority integer NOT NULL
jobs.status text COLLATE "C" NOT NULL
jobs.is_open boolean NOT NULL
jobs.is_dead_letter boolean NOT NULL
jobs.due_at bigint
jobs.wake_at bigint
jobs.key_until bigint
jobs.state text COLLATE "C" NOT NULL
jobs.fence bigint NOT NULL
jobs.round text COLLATE "C" NOT NULL
jobs.attempts_from bigint NOT NULL
jobs.memo text COLLATE "C"
jobs.replays text COLLATE "C" NOT NULL
jobs.run uuid
jobs.call_run uuid
jobs.call_node text COLLATE "C"
jobs.call_fence bigint
jobs.schedule uuid
jobs.limit_key text COLLATE "C" NOT NULL
jobs.fingerprint text COLLATE "C"
jobs.worker text COLLATE "C"
jobs.created_at bigint NOT NULL
jobs.updated_at bigint NOT NULL
journal.run uuid NOT NULL
journal.seq bigint NOT NULL
journal.v bigint NOT NULL
journal.at bigint NOT NULL
journal.command uuid NOT NULL
journal.events text COLLATE "C" NOT NULL
journal.balances text COLLATE "C"
ledger.project text COLLATE "C" NOT NULL
ledger.account text COLLATE "C" NOT NULL
ledger.seq bigint NOT NULL
ledger.kind text COLLATE "C" NOT NULL
ledger.amount bigint NOT NULL
ledger.key text COLLATE "C" NOT NULL
ledger.held bigint NOT NULL
ledger.borne_by_platform bigint NOT NULL
ledger.run uuid
ledger.node text COLLATE "C"
ledger.balance_after bigint NOT NULL
ledger.at bigint NOT NULL
logs.run uuid NOT NULL
logs.entry bigint NOT NULL
logs.fence bigint NOT NULL
logs.node text COLLATE "C" NOT NULL
logs.at bigint NOT NULL
logs.text text COLLATE "C" NOT NULL
logs.lines text COLLATE "C" NOT NULL
migrations.number bigint NOT NULL
migrations.name text COLLATE "C" NOT NULL
migrations.checksum bigint NOT NULL
named_flows.project text COLLATE "C" NOT NULL
named_flows.id uuid NOT NULL
named_flows.name text COLLATE "C" NOT NULL
named_flows.description text COLLATE "C" NOT NULL
named_flows.labels text COLLATE "C" NOT NULL
named_flows.is_template boolean NOT NULL
named_flows.latest bigint NOT NULL
named_flows.created_at bigint NOT NULL
named_flows.updated_at bigint NOT NULL
outbox.project text COLLATE "C" NOT NULL
outbox.sender bytea NOT NULL
outbox.seq bigint NOT NULL
outbox.part bigint NOT NULL
outbox.receiver bytea NOT NULL
outbox.at bigint NOT NULL
outbox.note text COLLATE "C" NOT NULL
outbox.is_delivered boolean NOT NULL
outbox.tree uuid
outbox.depth bigint
prices.project text COLLATE "C" NOT NULL
prices.service text COLLATE "C" NOT NULL
prices.price text COLLATE "C" NOT NULL
prices.updated_at bigint NOT NULL
queue_depths.project text COLLATE "C" NOT NULL
queue_depths.queue text COLLATE "C" NOT NULL
queue_depths.shard bigint NOT NULL
queue_depths.pending bigint NOT NULL
queue_depths.queued bigint NOT NULL
queue_depths.running bigint NOT NULL
queue_depths.suspended bigint NOT NULL
queue_depths.retrying bigint NOT NULL
queue_depths.dead bigint NOT NULL
queue_rates.project text COLLATE "C" NOT NULL
queue_rates.queue text COLLATE "C" NOT NULL
queue_rates.limit_key text COLLATE "C" NOT NULL
queue_rates.full_at bigint NOT NULL
queues.project text COLLATE "C" NOT NULL
queues.name text COLLATE "C" NOT NULL
queues.is_paused boolean NOT NULL
queues.limits text COLLATE "C" NOT NULL
queues.updated_at bigint NOT NULL
queues.turns bigint NOT NULL
registrations.project text COLLATE "C" NOT NULL
registrations.id text COLLATE "C" NOT NULL
registrations.name text COLLATE "C" NOT NULL
registrations.url text COLLATE "C" NOT NULL
registrations.kind text COLLATE "C" NOT NULL
registrations.services text COLLATE "C" NOT NULL
registrations.queues text COLLATE "C" NOT NULL
registrations.load bigint NOT NULL
registrations.capacity bigint NOT NULL
registrations.is_draining boolean NOT NULL
registrations.registered_at bigint NOT NULL
registrations.beat_at bigint NOT NULL
registrations.peer text COLLATE "C" NOT NULL
registrations.replaced text COLLATE "C" NOT NULL
registrations.secret text COLLATE "C"
runs.project text COLLATE "C" NOT NULL
runs.id uuid NOT NULL
runs.len bigint NOT NULL
runs.flow uuid NOT NULL
runs.version uuid NOT NULL
runs.request text COLLATE "C"
runs.request_digest text COLLATE "C"
runs.labels text COLLATE "C" NOT NULL
runs.account text COLLATE "C"
runs.parent_run uuid
runs.parent_node text COLLATE "C"
runs.parent_fence bigint
runs.parent_depth bigint
runs.root uuid
runs.schedule uuid
runs.created_at bigint NOT NULL
runs.status text COLLATE "C" NOT NULL
runs.round bigint NOT NULL
runs.node text COLLATE "C"
runs.action text COLLATE "C"
runs.step_count bigint NOT NULL
runs.wake_at bigint
runs.owner_server uuid
runs.owner_epoch bigint
runs.cost_estimated bigint NOT NULL
runs.cost_actual bigint NOT NULL
runs.cost_refunded bigint NOT NULL
runs.cost_settled bigint NOT NULL
runs.needs bigint
runs.error text COLLATE "C"
runs.shared text COLLATE "C"
runs.result text COLLATE "C"
runs.updated_at bigint NOT NULL
runs.ended_at bigint
runs.reopened text COLLATE "C"
runs.settled_at bigint
runs.wake_slot bigint
samples.project text COLLATE "C" NOT NULL
samples.scope text COLLATE "C" NOT NULL
samples.at bigint NOT NULL
samples.server uuid NOT NULL
samples.figures text COLLATE "C" NOT NULL
schedules.project text COLLATE "C" NOT NULL
schedules.id uuid NOT NULL
schedules.rev bigint NOT NULL
schedules.name text COLLATE "C" NOT NULL
schedules.rule text COLLATE "C" NOT NULL
schedules.target text COLLATE "C" NOT NULL
schedules.progress text COLLATE "C" NOT NULL
schedules.next_at bigint
schedules.history text COLLATE "C" NOT NULL
schedules.created_at bigint NOT NULL
schedules.updated_at bigint NOT NULL
servers.id uuid NOT NULL
servers.epoch bigint NOT NULL
servers.name text COLLATE "C" NOT NULL
servers.version text COLLATE "C" NOT NULL
servers.started_at bigint NOT NULL
servers.beat_at bigint NOT NULL
servers.worker_ttl_ms bigint NOT NULL
services.project text COLLATE "C" NOT NULL
services.name text COLLATE "C" NOT NULL
services.settings text COLLATE "C" NOT NULL
services.updated_at bigint NOT NULL
snapshots.run uuid NOT NULL
snapshots.seq bigint NOT NULL
snapshots.state bytea NOT NULL
store_keys.name text COLLATE "C" NOT NULL
store_keys.bytes bytea NOT NULL
versions.project text COLLATE "C" NOT NULL
versions.id uuid NOT NULL
versions.flow uuid NOT NULL
versions.number bigint NOT NULL
versions.definition text COLLATE "C" NOT NULL
versions.form text COLLATE "C" NOT NULL
versions.lenient boolean NOT NULL
versions.status text COLLATE "C" NOT NULL
versions.note text COLLATE "C" NOT NULL
versions.created_at bigint NOT NULL
versions.json text COLLATE "C"
versions.writes text COLLATE "C"
worker_services.project text COLLATE "C" NOT NULL
worker_services.service text COLLATE "C" NOT NULL
worker_services.worker text COLLATE "C" NOT NULL

api_keys: CHECK (length(hash) = 32)
blobs: CHECK (length(hash) = 64)
jobs: CHECK (NOT is_dead_letter OR status = 'failed'::text AND run IS NULL)
jobs: CHECK (is_open = (status <> ALL (ARRAY['completed'::text, 'failed'::text, 'canceled'::text])))
jobs: CHECK (is_open OR due_at IS NULL AND wake_at IS NULL)
jobs: CHECK (status = ANY (ARRAY['pending'::text, 'queued'::text, 'running'::text, 'suspended'::text, 'retrying'::text, 'completed'::text, 'failed'::text, 'canceled'::text]))
ledger: CHECK (kind = ANY (ARRAY['charge'::text, 'settle'::text, 'refund'::text, 'deposit'::text]))
runs: CHECK ((ended_at IS NULL) = (settled_at IS NULL))
runs: CHECK ((ended_at IS NULL) = (status = ANY (ARRAY['pending'::text, 'running'::text, 'waiting'::text, 'paused'::text, 'canceling'::text])))
runs: CHECK ((owner_server IS NULL) = (owner_epoch IS NULL))
runs: CHECK ((request IS NULL) = (request_digest IS NULL))
runs: CHECK (ended_at IS NULL OR wake_at IS NULL AND owner_server IS NULL)
runs: CHECK (status = ANY (ARRAY['pending'::text, 'running'::text, 'waiting'::text, 'paused'::text, 'canceling'::text, 'completed'::text, 'failed'::text, 'canceled'::text]))
store_keys: CHECK (length(bytes) = 32)

CREATE UNIQUE INDEX accounts_pkey ON public.accounts USING btree (project, id)
CREATE INDEX api_keys_by_project ON public.api_keys USING btree (project, id)
CREATE UNIQUE INDEX api_keys_pkey ON public.api_keys USING btree (id)
CREATE UNIQUE INDEX attempts_pkey ON public.attempts USING btree (job, number)
CREATE INDEX audit_by_subject ON public.audit USING btree (project, subject, seq)
CREATE INDEX audit_by_what ON public.audit USING btree (project, what, seq)
CREATE INDEX audit_by_who ON public.audit USING btree (project, who, seq)
CREATE UNIQUE INDEX audit_heads_pkey ON public.audit_heads USING btree (project)
CREATE UNIQUE INDEX audit_pkey ON public.audit USING btree (project, seq)
CREATE INDEX blob_refs_by_run ON public.blob_refs USING btree (run)
CREATE UNIQUE INDEX blob_refs_pkey ON public.blob_refs USING btree (project, hash, run)
CREATE UNIQUE INDEX blobs_pkey ON public.blobs USING btree (project, hash)
CREATE UNIQUE INDEX bulk_failures_pkey ON public.bulk_failures USING btree (bulk, no)
CREATE UNIQUE INDEX bulk_targets_pkey ON public.bulk_targets USING btree (bulk, part)
CREATE INDEX bulks_by_end ON public.bulks USING btree (ended_at) WHERE (ended_at IS NOT NULL)
CREATE INDEX bulks_by_project ON public.bulks USING btree (project, id)
CREATE INDEX bulks_open ON public.bulks USING btree (id) WHERE (ended_at IS NULL)
CREATE UNIQUE INDEX bulks_pkey ON public.bulks USING btree (id)
CREATE INDEX commands_by_age ON public.commands USING btree (at)
CREATE UNIQUE INDEX commands_pkey ON public.commands USING btree (id)
CREATE INDEX firings_by_started ON public.firings USING btree (started, is_run)
CREATE UNIQUE INDEX firings_pkey ON public.firings USING btree (schedule, slot, is_manual)
CREATE INDEX firings_running ON public.firings USING btree (schedule, slot, is_manual) WHERE is_running
CREATE UNIQUE INDEX flow_names_pkey ON public.flow_names USING btree (project, name)
CREATE INDEX flows_by_creation ON public.named_flows USING btree (project, created_at, id)
CREATE INDEX flows_by_name ON public.named_flows USING btree (project, name, created_at, id)
CREATE INDEX job_keys_by_job ON public.job_keys USING btree (job)
CREATE UNIQUE INDEX job_keys_pkey ON public.job_keys USING btree (project, queue, key)
CREATE UNIQUE INDEX job_specs_pkey ON public.job_specs USING btree (job)
CREATE INDEX jobs_by_creation ON public.jobs USING btree (project, created_at, id)
CREATE INDEX jobs_by_end ON public.jobs USING btree (updated_at, id) WHERE ((NOT is_open) AND (NOT is_dead_letter) AND (run IS NULL))
CREATE INDEX jobs_by_queue ON public.jobs USING btree (project, queue, created_at, id)
CREATE INDEX jobs_by_run ON public.jobs USING btree (run, created_at, id) WHERE (run IS NOT NULL)
CREATE INDEX jobs_by_schedule ON public.jobs USING btree (schedule, created_at, id) WHERE (schedule IS NOT NULL)
CREATE INDEX jobs_by_wake ON public.jobs USING btree (wake_at, id) WHERE (wake_at IS NOT NULL)
CREATE INDEX jobs_dead ON public.jobs USING btree (project, queue, created_at, id) WHERE is_dead_letter
CREATE INDEX jobs_dead_by_fingerprint ON public.jobs USING btree (project, queue, fingerprint, created_at, id, updated_at) WHERE is_dead_letter
CREATE INDEX jobs_ended ON public.jobs USING btree (project, status, created_at, id) WHERE (NOT is_open)
CREATE INDEX jobs_held ON public.jobs USING btree (project, queue, id) WHERE (status = 'running'::text)
CREATE INDEX jobs_open ON public.jobs USING btree (project, created_at, id) WHERE is_open
CREATE UNIQUE INDEX jobs_pkey ON public.jobs USING btree (id)
CREATE INDEX jobs_ready_by_name ON public.jobs USING btree (project, name, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key = ''::text))
CREATE INDEX jobs_ready_by_queue ON public.jobs USING btree (project, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key = ''::text))
CREATE UNIQUE INDEX journal_by_command ON public.journal USING btree (command)
CREATE UNIQUE INDEX journal_pkey ON public.journal USING btree (run, seq)
CREATE INDEX keyed_jobs_by_key ON public.jobs USING btree (project, queue, priority DESC, limit_key, due_at, id) WHERE ((status = 'queued'::text) AND (limit_key <> ''::text))
CREATE INDEX keyed_jobs_ready_by_name ON public.jobs USING btree (project, name, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key <> ''::text))
CREATE INDEX keyed_jobs_ready_by_queue ON public.jobs USING btree (project, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key <> ''::text))
CREATE UNIQUE INDEX ledger_by_key ON public.ledger USING btree (project, account, md5(key))
CREATE INDEX ledger_by_run ON public.ledger USING btree (project, account, run, seq) WHERE (run IS NOT NULL)
CREATE UNIQUE INDEX ledger_pkey ON public.ledger USING btree (project, account, seq)
CREATE INDEX logs_by_fence ON public.logs USING btree (run, fence)
CREATE UNIQUE INDEX logs_pkey ON public.logs USING btree (run, entry, fence)
CREATE UNIQUE INDEX migrations_pkey ON public.migrations USING btree (number)
CREATE UNIQUE INDEX named_flows_pkey ON public.named_flows USING btree (id)
CREATE INDEX outbox_by_receiver ON public.outbox USING btree (project, receiver) WHERE (NOT is_delivered)
CREATE INDEX outbox_by_tree ON public.outbox USING btree (project, tree, depth DESC, at, sender, seq, part) WHERE ((NOT is_delivered) AND (tree IS NOT NULL))
CREATE INDEX outbox_of_accounts ON public.outbox USING btree (at) WHERE (is_delivered AND (sender >= '\x01'::bytea))
CREATE UNIQUE INDEX outbox_pkey ON public.outbox USING btree (project, sender, seq, part)
CREATE INDEX outbox_undelivered ON public.outbox USING btree (at, project, sender, seq, part) WHERE ((NOT is_delivered) AND (tree IS NULL))
CREATE UNIQUE INDEX prices_pkey ON public.prices USING btree (project, service)
CREATE UNIQUE INDEX queue_depths_pkey ON public.queue_depths USING btree (project, queue, shard)
CREATE INDEX queue_rates_by_end ON public.queue_rates USING btree (project, full_at)
CREATE UNIQUE INDEX queue_rates_pkey ON public.queue_rates USING btree (project, queue, limit_key)
CREATE UNIQUE INDEX queues_pkey ON public.queues USING btree (project, name)
CREATE INDEX queues_without_settings ON public.queues USING btree (updated_at) WHERE ((NOT is_paused) AND (limits = '{}'::text))
CREATE UNIQUE INDEX registrations_pkey ON public.registrations USING btree (project, id)
CREATE INDEX run_jobs_ready_by_name ON public.jobs USING btree (project, name, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (run IS NOT NULL))
CREATE INDEX run_jobs_ready_by_queue ON public.jobs USING btree (project, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (run IS NOT NULL))
CREATE INDEX runs_by_account ON public.runs USING btree (project, account, created_at, id) WHERE (account IS NOT NULL)
CREATE INDEX runs_by_change ON public.runs USING btree (project, status, settled_at, id) WHERE (settled_at IS NOT NULL)
CREATE INDEX runs_by_creation ON public.runs USING btree (project, created_at, id)
CREATE INDEX runs_by_end ON public.runs USING btree (ended_at, id) WHERE (ended_at IS NOT NULL)
CREATE INDEX runs_by_owner ON public.runs USING btree (owner_server, owner_epoch, id) WHERE (owner_server IS NOT NULL)
CREATE INDEX runs_by_parent ON public.runs USING btree (parent_run, created_at, id) WHERE (parent_run IS NOT NULL)
CREATE UNIQUE INDEX runs_by_request ON public.runs USING btree (project, request) WHERE (request IS NOT NULL)
CREATE INDEX runs_by_root ON public.runs USING btree (project, root) WHERE (root IS NOT NULL)
CREATE INDEX runs_by_schedule ON public.runs USING btree (schedule, created_at, id) WHERE (schedule IS NOT NULL)
CREATE INDEX runs_by_version ON public.runs USING btree (project, version, status, settled_at, id) WHERE (settled_at IS NOT NULL)
CREATE INDEX runs_by_wake ON public.runs USING btree (wake_slot, id) WHERE (wake_slot IS NOT NULL)
CREATE INDEX runs_ended ON public.runs USING btree (project, status, created_at, id) WHERE (ended_at IS NOT NULL)
CREATE INDEX runs_ended_by_flow ON public.runs USING btree (project, flow, status, created_at, id) WHERE (ended_at IS NOT NULL)
CREATE INDEX runs_in_need ON public.runs USING btree (project, account, needs) WHERE (needs IS NOT NULL)
CREATE INDEX runs_open ON public.runs USING btree (project, created_at, id) WHERE (ended_at IS NULL)
CREATE INDEX runs_open_by_account ON public.runs USING btree (project, account, created_at, id) WHERE ((ended_at IS NULL) AND (account IS NOT NULL))
CREATE INDEX runs_open_by_flow ON public.runs USING btree (project, flow, created_at, id) WHERE (ended_at IS NULL)
CREATE INDEX runs_open_by_root ON public.runs USING btree (project, root) WHERE ((root IS NOT NULL) AND (ended_at IS NULL))
CREATE UNIQUE INDEX runs_pkey ON public.runs USING btree (id)
CREATE INDEX samples_by_age ON public.samples USING btree (at)
CREATE UNIQUE INDEX samples_pkey ON public.samples USING btree (project, scope, at, server)
CREATE INDEX schedules_by_creation ON public.schedules USING btree (project, created_at, id)
CREATE INDEX schedules_by_next ON public.schedules USING btree (next_at, id) WHERE (next_at IS NOT NULL)
CREATE UNIQUE INDEX schedules_pkey ON public.schedules USING btree (id)
CREATE UNIQUE INDEX servers_pkey ON public.servers USING btree (id)
CREATE UNIQUE INDEX services_pkey ON public.services USING btree (project, name)
CREATE UNIQUE INDEX snapshots_pkey ON public.snapshots USING btree (run)
CREATE UNIQUE INDEX store_keys_pkey ON public.store_keys USING btree (name)
CREATE UNIQUE INDEX versions_by_number ON public.versions USING btree (flow, number)
CREATE UNIQUE INDEX versions_pkey ON public.versions USING btree (id)
CREATE INDEX worker_services_by_worker ON public.worker_services USING btree (project, worker)
CREATE UNIQUE INDEX worker_services_pkey ON public.worker_services USING btree (project, service, worker)

VIEW entries
 SELECT journal.run,
    journal.seq,
    journal.v,
    calendar_time(journal.at) AS at,
    journal.command,
    (readable(journal.events))::jsonb AS events
   FROM journal;
VIEW events
 SELECT run_events.run,
    run_events.seq,
    run_events.place,
    calendar_time(run_events.at) AS at,
    run_events.kind,
    run_events.node,
    (run_events.event)::jsonb AS event
   FROM run_events;
VIEW flow_versions
 SELECT versions.flow,
    ('ver-'::text || (versions.id)::text) AS id,
    ('flow-'::text || (versions.flow)::text) AS flow_id,
    versions.number AS version,
        CASE
            WHEN (versions.json IS NOT NULL) THEN (readable(versions.json))::jsonb
            WHEN (ltrim(versions.definition, ' 	
'::text) ~~ '{%'::text) THEN (readable(versions.definition))::jsonb
            ELSE NULL::jsonb
        END AS definition_json,
    versions.status,
    calendar_time(versions.created_at) AS created_at
   FROM versions;
VIEW flows
 SELECT named_flows.id AS flow,
    ('flow-'::text || (named_flows.id)::text) AS id,
    named_flows.name,
    named_flows.description,
    (readable(named_flows.labels))::jsonb AS labels,
    named_flows.is_template,
    named_flows.latest AS latest_version,
    calendar_time(named_flows.created_at) AS created_at,
    calendar_time(named_flows.updated_at) AS updated_at
   FROM named_flows;
VIEW node_runs
 WITH shown AS (
         SELECT runs.project,
            runs.id AS run,
            (runs.id)::text AS uuid,
            runs.ended_at AS run_ended_at,
                CASE
                    WHEN ((versions.json IS NULL) AND (ltrim(versions.definition, ' 	
'::text) ~~ '{%'::text)) THEN readable(versions.definition)
                    ELSE NULL::json
                END AS definition,
            one.n,
            one.node,
            one.began_at,
            one.ended_at,
            one.waits_for,
            one.entered_with,
            one.last_fence,
            (one.beginning)::json AS beginning,
            (one.ending)::json AS ending,
            (((one.beginning)::json ->> 'fence'::text))::bigint AS fence,
            ((one.ending)::json ->> 'e'::text) AS how,
            regexp_replace(one.node, '/?[^/]*$'::text, ''::text) AS around,
            regexp_replace(one.node, '^.*/'::text, ''::text) AS own
           FROM ((runs
             LEFT JOIN versions ON ((versions.id = runs.version)))
             CROSS JOIN LATERAL ( WITH RECURSIVE numbered AS MATERIALIZED (
                         SELECT run_events.at,
                            run_events.kind,
                            run_events.node,
                            run_events.event,
                            ((run_events.event)::json ->> 'visit'::text) AS visit,
                            row_number() OVER (ORDER BY run_events.seq, run_events.place) AS n
                           FROM run_events
                          WHERE (run_events.run = runs.id)
                        ), round AS MATERIALIZED (
                         SELECT numbered.n,
                            numbered.at
                           FROM numbered
                          WHERE (numbered.kind = ANY (ARRAY['retried'::text, 'rerun'::text]))
                        ), later AS MATERIALIZED (
                         SELECT numbered.n,
                            numbered.kind,
                            numbered.node,
                            ( SELECT max(round.n) AS max
                                   FROM round
                                  WHERE (round.n < numbered.n)) AS round
                           FROM numbered
                          WHERE ((numbered.node IS NOT NULL) AND (numbered.n > ( SELECT min(round.n) AS min
                                   FROM round)))
                        ), around(n, kind, node, round, outside) AS (
                         SELECT later.n,
                            later.kind,
                            later.node,
                            later.round,
                            later.node
                           FROM later
                        UNION ALL
                         SELECT around.n,
                            around.kind,
                            around.node,
                            around.round,
                            regexp_replace(around.outside, '/[^/]*$'::text, ''::text) AS regexp_replace
                           FROM around
                          WHERE (strpos(around.outside, '/'::text) > 0)
                        ), resumed AS MATERIALIZED (
                         SELECT heard.outside AS node,
                            heard.round
                           FROM ( SELECT DISTINCT ON (around.outside, around.round) around.outside,
                                    around.round,
                                    around.node,
                                    around.kind
                                   FROM around
                                  ORDER BY around.outside, around.round, around.n) heard
                          WHERE ((heard.outside <> heard.node) OR (heard.kind <> ALL (ARRAY['entered'::text, 'granted'::text, 'opened'::text, 'skipped'::text])))
                        UNION
                         SELECT open.node,
                            ( SELECT max(round.n) AS max
                                   FROM round) AS max
                           FROM json_array_elements_text((readable(runs.reopened) -> 'open'::text)) open(node)
                          WHERE (NOT (open.node IN ( SELECT around.outside
                                   FROM around
                                  WHERE (around.round = ( SELECT max(round.n) AS max
   FROM round)))))
                        ), event_or_not AS (
                         SELECT numbered.at,
                            numbered.kind,
                            numbered.node,
                            numbered.event,
                            numbered.visit,
                            numbered.n
                           FROM numbered
                          WHERE (numbered.node IS NOT NULL)
                        UNION ALL
                         SELECT round.at,
                            'resumed'::text,
                            resumed.node,
                            (json_build_object('input', ( SELECT ((numbered.event)::json -> 'input'::text)
                                   FROM numbered
                                  WHERE ((numbered.node = resumed.node) AND (numbered.kind = 'entered'::text) AND (numbered.n < round.n))
                                  ORDER BY numbered.n DESC
                                 LIMIT 1)))::text AS json_build_object,
                            NULL::text,
                            round.n
                           FROM (resumed
                             JOIN round ON ((round.n = resumed.round)))
                          WHERE ((resumed.node IN ( SELECT numbered.node
                                   FROM numbered
                                  WHERE ((numbered.kind = 'entered'::text) AND (numbered.n < round.n)))) AND (NOT (resumed.node IN ( SELECT numbered.node
                                   FROM numbered
                                  WHERE (numbered.kind = 'granted'::text)))))
                        ), told AS (
                         SELECT event_or_not.at,
                            event_or_not.kind,
                            event_or_not.node,
                            event_or_not.event,
                            event_or_not.visit,
                            event_or_not.n,
                            bool_or((event_or_not.kind = 'granted'::text)) OVER (PARTITION BY event_or_not.node, event_or_not.visit) AS is_called,
                            bool_or((event_or_not.kind = 'entered'::text)) OVER (PARTITION BY event_or_not.node) AS is_entered,
                            max(
                                CASE event_or_not.kind
                                    WHEN 'entered'::text THEN (((event_or_not.event)::json -> 'input'::text))::text
                                    ELSE NULL::text
                                END) OVER (PARTITION BY event_or_not.node, event_or_not.visit) AS entered_with,
                            max(
                                CASE event_or_not.kind
                                    WHEN 'granted'::text THEN (((event_or_not.event)::json ->> 'fence'::text))::bigint
                                    ELSE NULL::bigint
                                END) OVER (PARTITION BY event_or_not.node) AS last_fence,
                            (event_or_not.kind = ANY (ARRAY['done'::text, 'failed'::text, 'deferred'::text, 'suspended'::text, 'dropped'::text])) AS ends
                           FROM event_or_not
                        ), begun AS (
                         SELECT told.at,
                            told.kind,
                            told.node,
                            told.event,
                            told.visit,
                            told.n,
                            told.is_called,
                            told.is_entered,
                            told.entered_with,
                            told.last_fence,
                            told.ends,
                                CASE told.kind
                                    WHEN 'granted'::text THEN true
                                    WHEN 'entered'::text THEN (NOT told.is_called)
                                    WHEN 'opened'::text THEN (NOT told.is_entered)
                                    WHEN 'resumed'::text THEN true
                                    ELSE false
                                END AS begins
                           FROM told
                        ), filed AS (
                         SELECT begun.at,
                            begun.kind,
                            begun.node,
                            begun.event,
                            begun.visit,
                            begun.n,
                            begun.is_called,
                            begun.is_entered,
                            begun.entered_with,
                            begun.last_fence,
                            begun.ends,
                            begun.begins,
                            count(*) FILTER (WHERE begun.begins) OVER (PARTITION BY begun.node ORDER BY begun.n) AS attempt
                           FROM begun
                        )
                 SELECT filed.node,
                    min(filed.n) AS n,
                    min(filed.at) AS began_at,
                    max(filed.last_fence) AS last_fence,
                    max(filed.event) FILTER (WHERE filed.begins) AS beginning,
                    max(filed.entered_with) FILTER (WHERE filed.begins) AS entered_with,
                    max(
                        CASE filed.kind
                            WHEN 'waiting'::text THEN (((filed.event)::json -> 'wait'::text) ->> 'for'::text)
                            ELSE NULL::text
                        END) AS waits_for,
                    (array_agg(filed.event ORDER BY filed.n DESC) FILTER (WHERE filed.ends))[1] AS ending,
                    max(filed.at) FILTER (WHERE filed.ends) AS ended_at
                   FROM filed
                  WHERE (filed.attempt > 0)
                  GROUP BY filed.node, filed.attempt) one)
        )
 SELECT shown.run,
    shown.n,
        CASE
            WHEN (shown.fence IS NULL) THEN ((shown.uuid || '.e'::text) || shown.n)
            ELSE ((shown.uuid || '.'::text) || shown.fence)
        END AS id,
    ('task-'::text || shown.uuid) AS task_id,
        CASE shown.around
            WHEN ''::text THEN shown.node
            ELSE shown.around
        END AS node_key,
    COALESCE(((shown.beginning ->> 'attempt'::text))::bigint, (1)::bigint) AS attempt_no,
        CASE
            WHEN (shown.how = 'done'::text) THEN 'ok'::text
            WHEN ((shown.how = 'failed'::text) OR (shown.how = 'deferred'::text)) THEN 'error'::text
            WHEN (shown.how = 'dropped'::text) THEN 'canceled'::text
            WHEN ((shown.how = 'suspended'::text) AND (shown.last_fence > shown.fence)) THEN 'ok'::text
            WHEN (shown.run_ended_at IS NOT NULL) THEN 'canceled'::text
            WHEN ((jobs.status = 'running'::text) OR (jobs.id IS NULL)) THEN 'running'::text
            ELSE 'queued'::text
        END AS status,
        CASE
            WHEN (shown.how = 'suspended'::text) THEN 'suspended'::text
            WHEN ((shown.how IS NULL) AND (shown.run_ended_at IS NULL) AND (shown.waits_for = ANY (ARRAY['timer'::text, 'signal'::text, 'approval'::text]))) THEN 'waiting'::text
            WHEN ((shown.around = ''::text) OR ((shown.how IS NULL) AND (shown.run_ended_at IS NULL))) THEN ''::text
            WHEN (shown.own ~ '[^0-9]'::text) THEN 'sub_node_complete'::text
            WHEN ((((shown.definition -> 'nodes'::text) -> replace(shown.around, '"'::text, ''::text)) ->> 'kind'::text) = 'parallel'::text) THEN 'branch_complete'::text
            ELSE 'item_complete'::text
        END AS sub_status,
        CASE
            WHEN (shown.around = ''::text) THEN ''::text
            WHEN (shown.own ~ '[^0-9]'::text) THEN shown.own
            ELSE COALESCE(((((shown.definition -> 'nodes'::text) -> replace(shown.around, '"'::text, ''::text)) -> 'parallel_services'::text) ->> (NULLIF("left"(shown.own, 9), ''::text))::integer), shown.own)
        END AS branch_id,
    COALESCE(((((shown.definition -> 'nodes'::text) -> replace(shown.node, '"'::text, ''::text)) -> 'prep'::text))::jsonb, '{}'::jsonb) AS prep_json,
    (COALESCE(((shown.beginning -> 'input'::text))::text, shown.entered_with, 'null'::text))::jsonb AS exec_input_json,
    (COALESCE((shown.ending -> 'output'::text), (shown.ending -> 'memo'::text)))::jsonb AS exec_output_json,
    COALESCE(((shown.ending -> 'fault'::text) ->> 'message'::text), ''::text) AS error_text,
    COALESCE((shown.ending ->> 'action'::text), (shown.ending ->> 'route'::text),
        CASE
            WHEN ((shown.how = 'done'::text) AND (shown.around = ''::text)) THEN 'default'::text
            ELSE ''::text
        END) AS action,
    calendar_time(shown.began_at) AS started_at,
    calendar_time(COALESCE(shown.ended_at, shown.run_ended_at)) AS finished_at,
    COALESCE((shown.ending ->> 'worker'::text), attempts.worker, ''::text) AS worker_id,
    COALESCE(registrations.url, ''::text) AS worker_url,
        CASE
            WHEN ((jobs.id IS NOT NULL) OR (EXISTS ( SELECT 1
               FROM logs
              WHERE ((logs.run = shown.run) AND (logs.fence = shown.fence))))) THEN ((('/api/tasks/logs?run_id='::text || shown.uuid) || '.'::text) || shown.fence)
            ELSE ''::text
        END AS log_path
   FROM (((shown
     LEFT JOIN jobs ON (((jobs.run = shown.run) AND (jobs.call_fence = shown.fence))))
     LEFT JOIN attempts ON (((attempts.job = jobs.id) AND (jobs.status = 'running'::text) AND (attempts.status = 'running'::text))))
     LEFT JOIN registrations ON (((registrations.project = shown.project) AND (registrations.id = COALESCE((shown.ending ->> 'worker'::text), attempts.worker)))));
VIEW run_events
 SELECT journal.run,
    journal.seq,
    (one.place - 1) AS place,
    journal.at,
    (one.event ->> 'e'::text) AS kind,
    (one.event ->> 'node'::text) AS node,
    (one.event)::text AS event
   FROM journal,
    LATERAL json_array_elements(readable(journal.events)) WITH ORDINALITY one(event, place);
VIEW run_retries
 SELECT runs.id AS run,
    ( WITH seen AS MATERIALIZED (
                 SELECT run_events.kind,
                    run_events.node,
                    run_events.event,
                    row_number() OVER (ORDER BY run_events.seq, run_events.place) AS n
                   FROM run_events
                  WHERE ((run_events.run = runs.id) AND (run_events.kind = ANY (ARRAY['retried'::text, 'rerun'::text, 'entered'::text, 'granted'::text, 'opened'::text, 'waiting'::text, 'deferred'::text, 'suspended'::text, 'done'::text, 'failed'::text, 'skipped'::text, 'dropped'::text])))
                ), newest AS (
                 SELECT seen_1.node,
                    max(seen_1.n) AS n,
                    max(
                        CASE seen_1.kind
                            WHEN 'granted'::text THEN (((seen_1.event)::json ->> 'attempt'::text))::bigint
                            ELSE NULL::bigint
                        END) AS attempt
                   FROM seen seen_1
                  WHERE ((seen_1.node IS NOT NULL) AND (seen_1.n > ( SELECT COALESCE(max(seen_2.n), (0)::bigint) AS "coalesce"
                           FROM seen seen_2
                          WHERE (seen_2.kind = ANY (ARRAY['retried'::text, 'rerun'::text])))))
                  GROUP BY seen_1.node
                )
         SELECT COALESCE(jsonb_object_agg(newest.node, jsonb_build_object('attempt', (COALESCE(newest.attempt, (0)::bigint) + 1), 'next_try_at', (((seen.event)::json ->> 'until'::text))::bigint, 'error', (((seen.event)::json -> 'fault'::text) ->> 'message'::text))), '{}'::jsonb) AS "coalesce"
           FROM (newest
             JOIN seen ON ((seen.n = newest.n)))
          WHERE (seen.kind = 'deferred'::text)) AS retries
   FROM runs
  WHERE (runs.ended_at IS NULL);
VIEW run_shared
 SELECT runs.id AS run,
    COALESCE((readable(runs.shared))::jsonb, ( WITH RECURSIVE said AS MATERIALIZED (
                 SELECT run_events.kind,
                    run_events.node,
                    (run_events.event)::json AS event,
                    row_number() OVER (ORDER BY run_events.seq, run_events.place) AS n
                   FROM run_events
                  WHERE ((run_events.run = runs.id) AND (run_events.kind = ANY (ARRAY['started'::text, 'rerun'::text, 'done'::text, 'signaled'::text])))
                ), base AS MATERIALIZED (
                 SELECT said.n,
                    COALESCE((said.event -> 'shared'::text), ( SELECT COALESCE((said.event -> 'params'::text), written_out(runs.project, (said.event -> 'params_in'::text))) AS "coalesce"
                           FROM versions
                          WHERE ((versions.id = runs.version) AND (versions.form = 'dag'::text))), '{}'::json) AS given
                   FROM said
                  WHERE ((said.kind = 'started'::text) OR ((said.kind = 'rerun'::text) AND ((said.event -> 'shared'::text) IS NOT NULL)))
                  ORDER BY said.n DESC
                 LIMIT 1
                ), writes AS MATERIALIZED (
                 SELECT (one.value ->> 'node'::text) AS node,
                    replace(replace(replace(replace(replace(replace(replace((one.value ->> 'like'::text), '\'::text, '\\'::text), '%'::text, '\%'::text), '_'::text, '\_'::text), '*'::text, '%'::text), '[%]'::text, '*'::text), '[?]'::text, '?'::text), '[[]'::text, '['::text) AS pattern,
                    ((one.value ->> 'depth'::text))::integer AS depth,
                    (one.value ->> 'key'::text) AS name,
                    (one.value -> 'path'::text) AS path
                   FROM versions,
                    LATERAL json_array_elements(readable(versions.writes)) one(value)
                  WHERE (versions.id = runs.version)
                ), results AS MATERIALIZED (
                 SELECT said.n,
                    said.node,
                    (said.event -> 'output'::text) AS output
                   FROM said
                  WHERE ((said.kind = 'done'::text) AND (said.n > ( SELECT base.n
                           FROM base)) AND ((said.event -> 'output'::text) IS NOT NULL))
                ), results_written AS (
                 SELECT results.n,
                    writes.name,
                    writes.path,
                    results.output
                   FROM (results
                     JOIN writes ON ((writes.node = results.node)))
                UNION ALL
                 SELECT results.n,
                    writes.name,
                    writes.path,
                    results.output
                   FROM (writes
                     JOIN results ON (((results.node ~~ writes.pattern) AND ((length(results.node) - length(replace(results.node, '/'::text, ''::text))) = writes.depth))))
                ), followed(n, name, value, path, at) AS (
                 SELECT results_written.n,
                    results_written.name,
                    results_written.output,
                    results_written.path,
                    0 AS "?column?"
                   FROM results_written
                  WHERE ((json_array_length(results_written.path) = 0) OR (json_typeof(results_written.output) = 'object'::text))
                UNION ALL
                 SELECT followed.n,
                    followed.name,
                    COALESCE(
                        CASE
                            WHEN ((json_typeof(followed.value) = 'object'::text) AND (json_typeof((followed.path -> followed.at)) = 'string'::text)) THEN (followed.value -> (followed.path ->> followed.at))
                            WHEN ((json_typeof(followed.value) = 'array'::text) AND ((followed.path ->> followed.at) ~ '^[0-9]{1,9}$'::text)) THEN (followed.value -> ((followed.path ->> followed.at))::integer)
                            ELSE NULL::json
                        END, 'null'::json) AS "coalesce",
                    followed.path,
                    (followed.at + 1)
                   FROM followed
                  WHERE (followed.at < json_array_length(followed.path))
                ), written(n, name, value) AS (
                 SELECT base.n,
                    one.key,
                    (one.value)::text AS value
                   FROM base,
                    LATERAL json_each(
                        CASE
                            WHEN (json_typeof(base.given) = 'object'::text) THEN base.given
                            ELSE '{}'::json
                        END) one(key, value)
                UNION ALL
                 SELECT followed.n,
                    followed.name,
                    (followed.value)::text AS value
                   FROM followed
                  WHERE (followed.at = json_array_length(followed.path))
                UNION ALL
                 SELECT said.n,
                    (said.event ->> 'key'::text),
                    COALESCE(((said.event -> 'value'::text))::text, 'null'::text) AS "coalesce"
                   FROM said
                  WHERE ((said.kind = 'signaled'::text) AND (said.n > ( SELECT base.n
                           FROM base)))
                ), newest AS (
                 SELECT DISTINCT ON (written.name) written.name,
                    written.value
                   FROM written
                  ORDER BY written.name, written.n DESC
                )
         SELECT jsonb_object_agg(newest.name, (newest.value)::jsonb) AS jsonb_object_agg
           FROM newest), '{}'::jsonb) AS shared
   FROM runs;
VIEW task_queue
 SELECT jobs.id AS job,
    (((jobs.id)::text || '.'::text) || jobs.fence) AS id,
    ('task-'::text || (jobs.call_run)::text) AS task_id,
        CASE strpos(jobs.call_node, '/'::text)
            WHEN 0 THEN jobs.call_node
            ELSE regexp_replace(jobs.call_node, '/[^/]*$'::text, ''::text)
        END AS node_key,
    jobs.name AS service,
    (json_build_object('input', (readable(job_specs.payload) -> 'input'::text), 'params', COALESCE((readable(job_specs.payload) -> 'params'::text), written_out(jobs.project, (readable(job_specs.payload) -> 'params_in'::text))), 'run_id', (((jobs.call_run)::text || '.'::text) || jobs.call_fence)))::jsonb AS input_json,
        CASE jobs.status
            WHEN 'canceled'::text THEN 'cancelled'::text
            ELSE jobs.status
        END AS status,
    COALESCE(attempts.worker, ''::text) AS worker_id,
    calendar_time(jobs.created_at) AS created_at,
    calendar_time(attempts.started_at) AS started_at,
    calendar_time(LEAST(((readable(jobs.state) ->> 'lease_until'::text))::bigint, ((readable(jobs.state) ->> 'deadline'::text))::bigint)) AS timeout_at
   FROM ((jobs
     JOIN job_specs ON ((job_specs.job = jobs.id)))
     LEFT JOIN attempts ON (((attempts.job = jobs.id) AND (attempts.number = ( SELECT max(last.number) AS max
           FROM attempts last
          WHERE (last.job = jobs.id))))))
  WHERE (jobs.call_run IS NOT NULL);
VIEW task_runs
 SELECT shown.job,
    ("left"((shown.job)::text, 28) || lpad(to_hex(shown.number), 8, '0'::text)) AS id,
    (shown.job)::text AS task_id,
    shown.number AS attempt,
        CASE shown.status
            WHEN 'canceled'::text THEN 'cancelled'::text
            ELSE shown.status
        END AS status,
    shown.worker AS worker_id,
    calendar_time(shown.started_at) AS started_at,
    calendar_time(shown.finished_at) AS finished_at,
    (readable(shown.result))::jsonb AS result,
    (readable(shown.error) ->> 'message'::text) AS error,
    calendar_time(shown.next_retry_at) AS next_retry_at,
    calendar_time(shown.created_at) AS created_at
   FROM ( SELECT attempts.job,
            attempts.number,
            attempts.status,
            attempts.worker,
            attempts.created_at,
            attempts.started_at,
            attempts.finished_at,
            attempts.result,
            attempts.error,
            attempts.next_retry_at
           FROM attempts
        UNION ALL
         SELECT jobs.id,
            1,
            'queued'::text,
            NULL::text,
            jobs.created_at,
            NULL::bigint,
            NULL::bigint,
            NULL::text,
            NULL::text,
            NULL::bigint
           FROM jobs
          WHERE ((jobs.fence = 0) AND jobs.is_open AND (NOT (EXISTS ( SELECT 1
                   FROM attempts
                  WHERE (attempts.job = jobs.id)))))) shown;
VIEW tasks
 SELECT runs.id AS run,
    NULL::uuid AS job,
    ('task-'::text || (runs.id)::text) AS id,
    named_flows.name,
    'run'::text AS type,
    NULL::text AS queue_name,
    NULL::integer AS priority,
    NULL::jsonb AS payload,
    NULL::integer AS max_retries,
        CASE
            WHEN ((runs.status = 'running'::text) AND (runs.owner_server IS NULL)) THEN 'waiting_queue'::text
            WHEN ((runs.status = 'waiting'::text) AND (runs.step_count = 0)) THEN 'pending'::text
            WHEN ((runs.status = 'waiting'::text) OR (runs.status = 'paused'::text)) THEN 'running'::text
            ELSE runs.status
        END AS status,
    NULL::text AS dedup_key,
    NULL::timestamp with time zone AS run_at,
    calendar_time(runs.created_at) AS created_at,
    calendar_time(runs.updated_at) AS updated_at,
    ('ver-'::text || (runs.version)::text) AS flow_version_id,
    ('flow-'::text || (runs.flow)::text) AS flow_id,
    named_flows.name AS flow_name,
    versions.number AS flow_version,
    COALESCE(( SELECT (COALESCE(((readable(journal.events) -> 0) -> 'params'::text), written_out(runs.project, ((readable(journal.events) -> 0) -> 'params_in'::text))))::jsonb AS "coalesce"
           FROM journal
          WHERE ((journal.run = runs.id) AND (journal.seq = 1))), '{}'::jsonb) AS params_json,
    ( SELECT run_shared.shared
           FROM run_shared
          WHERE (run_shared.run = runs.id)) AS shared_json,
    COALESCE(runs.node, ''::text) AS current_node_key,
    COALESCE(runs.action, ''::text) AS last_action,
    runs.step_count,
    COALESCE(( SELECT run_retries.retries
           FROM run_retries
          WHERE (run_retries.run = runs.id)), '{}'::jsonb) AS retry_state_json,
    COALESCE(servers.name, ''::text) AS lease_owner,
    calendar_time((servers.beat_at + 10000)) AS lease_expiry,
    COALESCE(runs.request, ''::text) AS request_id
   FROM (((runs
     LEFT JOIN named_flows ON ((named_flows.id = runs.flow)))
     LEFT JOIN versions ON ((versions.id = runs.version)))
     LEFT JOIN servers ON (((servers.id = runs.owner_server) AND (servers.epoch = runs.owner_epoch))))
UNION ALL
 SELECT NULL::uuid AS run,
    jobs.id AS job,
    (jobs.id)::text AS id,
    jobs.name,
        CASE
            WHEN ((jobs.schedule IS NULL) AND ((readable(job_specs.spec) ->> 'run_at'::text) IS NULL)) THEN 'immediate'::text
            ELSE 'scheduled'::text
        END AS type,
    jobs.queue AS queue_name,
    jobs.priority,
    (readable(job_specs.payload))::jsonb AS payload,
    ((readable(job_specs.spec) ->> 'max_retries'::text))::integer AS max_retries,
        CASE jobs.status
            WHEN 'running'::text THEN 'queued'::text
            WHEN 'suspended'::text THEN 'queued'::text
            WHEN 'retrying'::text THEN 'queued'::text
            WHEN 'canceled'::text THEN 'cancelled'::text
            ELSE jobs.status
        END AS status,
    (readable(job_specs.spec) ->> 'dedup_key'::text) AS dedup_key,
    calendar_time(((readable(job_specs.spec) ->> 'run_at'::text))::bigint) AS run_at,
    calendar_time(jobs.created_at) AS created_at,
    calendar_time(jobs.updated_at) AS updated_at,
    NULL::text AS flow_version_id,
    NULL::text AS flow_id,
    NULL::text AS flow_name,
    NULL::bigint AS flow_version,
    NULL::jsonb AS params_json,
    NULL::jsonb AS shared_json,
    NULL::text AS current_node_key,
    NULL::text AS last_action,
    NULL::bigint AS step_count,
    NULL::jsonb AS retry_state_json,
    NULL::text AS lease_owner,
    NULL::timestamp with time zone AS lease_expiry,
    NULL::text AS request_id
   FROM (jobs
     JOIN job_specs ON ((job_specs.job = jobs.id)));
VIEW workers
 SELECT registrations.project,
    registrations.id,
    registrations.name,
    registrations.url,
    registrations.kind AS type,
    (readable(registrations.services))::jsonb AS services,
    (readable(registrations.services))::jsonb AS services_json,
    (readable(registrations.queues))::jsonb AS queues,
    registrations.load,
    registrations.capacity,
    calendar_time(registrations.registered_at) AS registered_at,
    calendar_time(registrations.beat_at) AS last_heartbeat,
    calendar_time(registrations.beat_at) AS heartbeat_at,
        CASE
            WHEN ((registrations.beat_at)::numeric > ((EXTRACT(epoch FROM clock_timestamp()) * (1000)::numeric) - (COALESCE(( SELECT servers.worker_ttl_ms
               FROM servers
              ORDER BY servers.beat_at DESC
             LIMIT 1), (15000)::bigint))::numeric)) THEN 'online'::text
            ELSE 'offline'::text
        END AS status
   FROM registrations;
VIEW workflow_logs
 SELECT told.run,
    ((((('run_'::text || replace((told.run)::text, '-'::text, ''::text)) || '.'::text) || told.seq) || '.'::text) || told.place) AS id,
    ('run_'::text || replace((told.run)::text, '-'::text, ''::text)) AS workflow_task_id,
        CASE
            WHEN (told.kind = 'logged'::text) THEN (told.event ->> 'level'::text)
            WHEN (told.kind = 'failed'::text) THEN
            CASE
                WHEN ((told.event ->> 'route'::text) IS NULL) THEN 'error'::text
                ELSE 'warn'::text
            END
            WHEN (told.kind = 'ended'::text) THEN
            CASE (told.event ->> 'status'::text)
                WHEN 'completed'::text THEN 'info'::text
                WHEN 'failed'::text THEN 'error'::text
                ELSE 'warn'::text
            END
            WHEN (told.kind = 'waiting'::text) THEN
            CASE
                WHEN (((told.event -> 'wait'::text) ->> 'for'::text) = ANY (ARRAY['balance'::text, 'budget'::text])) THEN 'warn'::text
                ELSE 'info'::text
            END
            WHEN (told.kind = ANY (ARRAY['deferred'::text, 'expiring'::text, 'dropped'::text, 'canceling'::text, 'draining'::text, 'set_back'::text])) THEN 'warn'::text
            ELSE 'info'::text
        END AS level,
    told.node AS node_id,
        CASE told.kind
            WHEN 'started'::text THEN 'the run started'::text
            WHEN 'entered'::text THEN 'entered'::text
            WHEN 'granted'::text THEN
            CASE (told.event ->> 'again'::text)
                WHEN 'true'::text THEN 'asked again'::text
                ELSE ('called, attempt '::text || (told.event ->> 'attempt'::text))
            END
            WHEN 'suspended'::text THEN
            CASE
                WHEN ((told.event ->> 'until'::text) IS NULL) THEN 'suspended until it is reported'::text
                ELSE 'suspended, asked again later'::text
            END
            WHEN 'deferred'::text THEN ((
            CASE (told.event ->> 'next'::text)
                WHEN 'retry'::text THEN 'failed, tried again'::text
                WHEN 'failover'::text THEN 'failed, another worker is asked'::text
                WHEN 'quick'::text THEN 'temporary fault, tried again at once'::text
                WHEN 'recheck'::text THEN 'temporary faults go on, suspended and asked again later'::text
                WHEN 'lost'::text THEN 'lost, given to another worker'::text
                WHEN 'recovered'::text THEN 'lost with its server, called again'::text
                WHEN 'restart'::text THEN 'failed, started again from its beginning'::text
                ELSE NULL::text
            END || ': '::text) || ((told.event -> 'fault'::text) ->> 'message'::text))
            WHEN 'expiring'::text THEN 'took too long and was told to stop'::text
            WHEN 'done'::text THEN 'done'::text
            WHEN 'failed'::text THEN (
            CASE
                WHEN ((told.event ->> 'route'::text) IS NULL) THEN 'failed: '::text
                ELSE 'failed, and an edge catches it: '::text
            END || ((told.event -> 'fault'::text) ->> 'message'::text))
            WHEN 'skipped'::text THEN 'skipped'::text
            WHEN 'dropped'::text THEN 'canceled'::text
            WHEN 'judged'::text THEN ('edges not taken: '::text || json_array_length((told.event -> 'dead'::text)))
            WHEN 'opened'::text THEN 'opened'::text
            WHEN 'turned'::text THEN (('turn '::text || (told.event ->> 'index'::text)) || ' ended'::text)
            WHEN 'waiting'::text THEN
            CASE ((told.event -> 'wait'::text) ->> 'for'::text)
                WHEN 'timer'::text THEN 'waits for a time'::text
                WHEN 'signal'::text THEN 'waits for a signal'::text
                WHEN 'approval'::text THEN 'waits for a decision'::text
                WHEN 'balance'::text THEN 'waits for money'::text
                WHEN 'budget'::text THEN 'waits for a larger budget'::text
                ELSE NULL::text
            END
            WHEN 'signaled'::text THEN ('signal: '::text || (told.event ->> 'key'::text))
            WHEN 'decided'::text THEN 'decided'::text
            WHEN 'canceling'::text THEN 'cancel was asked for'::text
            WHEN 'draining'::text THEN 'failed inside: calls in hand may end, nothing more begins'::text
            WHEN 'paused'::text THEN 'paused'::text
            WHEN 'resumed'::text THEN 'resumed'::text
            WHEN 'stepped'::text THEN 'one step was asked for'::text
            WHEN 'set_back'::text THEN 'its times were set back after a clock that was wrong'::text
            WHEN 'retried'::text THEN ('retried, round '::text || (told.event ->> 'round'::text))
            WHEN 'rerun'::text THEN ((('run again from '::text || (told.event ->> 'from'::text)) || ', round '::text) || (told.event ->> 'round'::text))
            WHEN 'funded'::text THEN 'money or a larger budget came'::text
            WHEN 'billed'::text THEN 'the child run said what it cost'::text
            WHEN 'logged'::text THEN (told.event ->> 'message'::text)
            WHEN 'ended'::text THEN
            CASE (told.event ->> 'status'::text)
                WHEN 'completed'::text THEN 'the run completed'::text
                WHEN 'failed'::text THEN ('the run failed: '::text || COALESCE(((told.event -> 'error'::text) ->> 'message'::text), ''::text))
                ELSE 'the run was canceled'::text
            END
            ELSE told.kind
        END AS message,
        CASE told.kind
            WHEN 'logged'::text THEN '{}'::jsonb
            ELSE ( SELECT COALESCE(jsonb_object_agg(one.key, one.value), '{}'::jsonb) AS "coalesce"
               FROM json_each(told.event) one(key, value)
              WHERE ((one.key <> ALL (ARRAY['e'::text, 'node'::text, 'params'::text, 'params_in'::text, 'prices'::text, 'rechecks'::text, 'services'::text, 'input'::text, 'output'::text, 'outputs'::text, 'memo'::text, 'result'::text, 'shared'::text, 'value'::text, 'names'::text])) AND (NOT ((told.kind = 'granted'::text) AND (one.key = 'by'::text)))))
        END AS data,
    calendar_time(told.at) AS created_at
   FROM ( SELECT run_events.run,
            run_events.seq,
            run_events.place,
            run_events.at,
            run_events.kind,
            run_events.node,
            (run_events.event)::json AS event
           FROM run_events) told
  WHERE ((told.kind <> 'judged'::text) OR (json_array_length((told.event -> 'dead'::text)) > 0))
UNION ALL
 SELECT logs.run,
    (((((('run_'::text || replace((logs.run)::text, '-'::text, ''::text)) || '.'::text) || logs.entry) || '.f'::text) || logs.fence) || '.-1'::text) AS id,
    ('run_'::text || replace((logs.run)::text, '-'::text, ''::text)) AS workflow_task_id,
    'info'::text AS level,
    logs.node AS node_id,
    logs.text AS message,
    '{}'::jsonb AS data,
    calendar_time(logs.at) AS created_at
   FROM logs
  WHERE ((logs.entry > 0) AND (logs.text <> ''::text))
UNION ALL
 SELECT logs.run,
    ((((((('run_'::text || replace((logs.run)::text, '-'::text, ''::text)) || '.'::text) || logs.entry) || '.f'::text) || logs.fence) || '.'::text) || (line.n - 1)) AS id,
    ('run_'::text || replace((logs.run)::text, '-'::text, ''::text)) AS workflow_task_id,
    (line.value ->> 'level'::text) AS level,
    logs.node AS node_id,
    (line.value ->> 'message'::text) AS message,
    COALESCE(NULLIF(((line.value -> 'data'::text))::jsonb, 'null'::jsonb), '{}'::jsonb) AS data,
    calendar_time(logs.at) AS created_at
   FROM logs,
    LATERAL json_array_elements(readable(logs.lines)) WITH ORDINALITY line(value, n)
  WHERE (logs.entry > 0);
VIEW workflow_tasks
 SELECT runs.id AS run,
    ('run_'::text || replace((runs.id)::text, '-'::text, ''::text)) AS id,
    runs.account AS account_id,
    ('flow_'::text || replace((runs.flow)::text, '-'::text, ''::text)) AS workflow_id,
    COALESCE((begun.event ->> 'exec_mode'::text), 'all'::text) AS exec_mode,
    COALESCE(((begun.event -> 'start_node_ids'::text))::jsonb, '[]'::jsonb) AS start_node_ids,
        CASE
            WHEN (runs.status = ANY (ARRAY['waiting'::text, 'paused'::text, 'canceling'::text])) THEN 'running'::text
            ELSE runs.status
        END AS status,
    ( WITH RECURSIVE numbered AS MATERIALIZED (
                 SELECT run_events.at,
                    run_events.kind,
                    run_events.node,
                    run_events.event,
                    row_number() OVER (ORDER BY run_events.seq, run_events.place) AS n
                   FROM run_events
                  WHERE (run_events.run = runs.id)
                ), round AS MATERIALIZED (
                 SELECT COALESCE(max(numbered.n), (0)::bigint) AS n
                   FROM numbered
                  WHERE (numbered.kind = ANY (ARRAY['retried'::text, 'rerun'::text]))
                ), seen AS MATERIALIZED (
                 SELECT numbered.node,
                    max(numbered.n) AS n,
                    (max(numbered.n) < ( SELECT round.n
                           FROM round)) AS is_before,
                    max(numbered.at) AS at,
                    max(
                        CASE numbered.kind
                            WHEN 'entered'::text THEN numbered.at
                            ELSE NULL::bigint
                        END) AS entered_at,
                    max(
                        CASE numbered.kind
                            WHEN 'granted'::text THEN (((numbered.event)::json ->> 'fence'::text))::bigint
                            ELSE NULL::bigint
                        END) AS fence,
                    ((array_agg(numbered.event ORDER BY numbered.n DESC))[1])::json AS last
                   FROM numbered
                  WHERE (numbered.kind = ANY (ARRAY['entered'::text, 'granted'::text, 'opened'::text, 'waiting'::text, 'deferred'::text, 'suspended'::text, 'expiring'::text, 'done'::text, 'failed'::text, 'skipped'::text, 'dropped'::text]))
                  GROUP BY numbered.node
                ), fresh AS MATERIALIZED (
                 SELECT numbered.node,
                    max(numbered.n) AS n
                   FROM numbered
                  WHERE ((numbered.kind = ANY (ARRAY['entered'::text, 'opened'::text])) AND (numbered.node IN ( SELECT numbered_1.node
                           FROM numbered numbered_1
                          WHERE (numbered_1.kind = 'entered'::text))))
                  GROUP BY numbered.node
                ), pending AS MATERIALIZED (
                 SELECT json_array_elements_text((readable(runs.reopened) -> 'pending'::text)) AS node
                ), waiting AS MATERIALIZED (
                 SELECT json_array_elements_text((readable(runs.reopened) -> 'waiting'::text)) AS node
                ), open AS MATERIALIZED (
                 SELECT json_array_elements_text((readable(runs.reopened) -> 'open'::text)) AS node
                ), turns AS MATERIALIZED (
                 SELECT json_each_text.key AS node,
                    (json_each_text.value)::bigint AS n
                   FROM json_each_text((readable(runs.reopened) -> 'turns'::text)) json_each_text(key, value)
                ), around(node, n, is_before, outside) AS (
                 SELECT seen.node,
                    seen.n,
                    seen.is_before,
                    seen.node
                   FROM seen
                UNION ALL
                 SELECT around.node,
                    around.n,
                    around.is_before,
                    regexp_replace(around.outside, '/[^/]*$'::text, ''::text) AS regexp_replace
                   FROM around
                  WHERE (strpos(around.outside, '/'::text) > 0)
                ), gone AS MATERIALIZED (
                 SELECT around.node
                   FROM (around
                     JOIN fresh ON ((fresh.node = around.outside)))
                  WHERE ((around.outside <> around.node) AND (fresh.n > around.n))
                UNION
                 SELECT around.node
                   FROM (around
                     JOIN pending ON ((pending.node = around.outside)))
                  WHERE ((around.outside <> around.node) AND around.is_before)
                UNION
                 SELECT around.node
                   FROM (around
                     JOIN turns ON ((turns.node = around.outside)))
                  WHERE (around.is_before AND (around.outside <> around.node) AND (turns.n <= COALESCE(("substring"(substr(around.node, (length(around.outside) + 2)), '^[0-9]{1,18}'::text))::bigint, (0)::bigint)))
                ), judged AS (
                 SELECT standing.node,
                    standing.n,
                    standing.is_before,
                    standing.at,
                    standing.entered_at,
                    standing.fence,
                    standing.last,
                    standing.is_open,
                        CASE
                            WHEN (standing.is_before AND ((standing.node IN ( SELECT pending.node
                               FROM pending)) OR (standing.node IN ( SELECT waiting.node
                               FROM waiting)))) THEN 'pending'::text
                            WHEN standing.is_open THEN
                            CASE
                                WHEN (runs.ended_at IS NULL) THEN 'running'::text
                                ELSE 'canceled'::text
                            END
                            WHEN ((standing.last ->> 'e'::text) = 'done'::text) THEN 'completed'::text
                            WHEN ((standing.last ->> 'e'::text) = 'dropped'::text) THEN 'canceled'::text
                            ELSE (standing.last ->> 'e'::text)
                        END AS status
                   FROM ( SELECT seen.node,
                            seen.n,
                            seen.is_before,
                            seen.at,
                            seen.entered_at,
                            seen.fence,
                            seen.last,
                            (((seen.last ->> 'e'::text) <> ALL (ARRAY['done'::text, 'failed'::text, 'skipped'::text, 'dropped'::text])) OR (seen.is_before AND (seen.node IN ( SELECT open.node
                                   FROM open)))) AS is_open
                           FROM seen
                          WHERE (NOT (seen.node IN ( SELECT gone.node
                                   FROM gone)))) standing
                ), stated AS (
                 SELECT judged.node,
                    judged.status,
                    judged.last,
                    (json_strip_nulls(json_build_object('status', judged.status, 'taskId',
                        CASE
                            WHEN (judged.status <> 'pending'::text) THEN ( SELECT ('job_'::text || replace((jobs.id)::text, '-'::text, ''::text))
                               FROM jobs
                              WHERE ((jobs.run = runs.id) AND (jobs.call_fence = judged.fence) AND (jobs.call_node = judged.node)))
                            ELSE NULL::text
                        END, 'error',
                        CASE
                            WHEN (judged.status = 'failed'::text) THEN ((judged.last -> 'fault'::text) ->> 'message'::text)
                            ELSE NULL::text
                        END, 'startedAt',
                        CASE
                            WHEN (judged.status <> 'pending'::text) THEN to_char((to_timestamp((((judged.entered_at)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text)
                            ELSE NULL::text
                        END, 'completedAt',
                        CASE
                            WHEN (judged.status <> ALL (ARRAY['pending'::text, 'running'::text])) THEN to_char((to_timestamp((((
                            CASE
                                WHEN judged.is_open THEN runs.ended_at
                                ELSE judged.at
                            END)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text)
                            ELSE NULL::text
                        END)))::jsonb AS state
                   FROM judged
                )
         SELECT COALESCE(jsonb_object_agg(stated.node,
                CASE
                    WHEN ((stated.status = 'completed'::text) AND ((stated.last -> 'output'::text) IS NOT NULL)) THEN (stated.state || jsonb_build_object('output', (stated.last -> 'output'::text)))
                    ELSE stated.state
                END), '{}'::jsonb) AS "coalesce"
           FROM stated) AS node_states,
    ( SELECT run_shared.shared
           FROM run_shared
          WHERE (run_shared.run = runs.id)) AS runtime_variables,
    runs.cost_estimated AS total_estimated_cost,
    runs.cost_actual AS total_actual_cost,
    (readable(runs.error) ->> 'node'::text) AS error_node_id,
    (readable(runs.error) ->> 'message'::text) AS error_message,
    calendar_time(begun.at) AS started_at,
    calendar_time(runs.ended_at) AS completed_at,
    calendar_time(runs.created_at) AS created_at,
    calendar_time(runs.updated_at) AS updated_at
   FROM (runs
     LEFT JOIN LATERAL ( SELECT run_events.at,
            (run_events.event)::json AS event
           FROM run_events
          WHERE ((run_events.run = runs.id) AND (run_events.seq = 1) AND (run_events.place = 0))) begun ON (true));
VIEW workflows
 SELECT shown.flow,
    ('flow_'::text || replace((shown.flow)::text, '-'::text, ''::text)) AS id,
    NULLIF(COALESCE((shown.definition ->> 'account'::text), (shown.definition ->> 'account_id'::text)), ''::text) AS account_id,
    shown.name,
    shown.description,
    COALESCE(((shown.definition -> 'nodes'::text))::jsonb, '[]'::jsonb) AS nodes,
    COALESCE(((shown.definition -> 'edges'::text))::jsonb, '[]'::jsonb) AS edges,
    COALESCE(((shown.definition -> 'variables'::text))::jsonb, '{}'::jsonb) AS variables,
    shown.is_template,
    calendar_time(shown.created_at) AS created_at,
    calendar_time(shown.updated_at) AS updated_at
   FROM ( SELECT named_flows.id AS flow,
            named_flows.name,
            named_flows.description,
            named_flows.is_template,
            named_flows.created_at,
            named_flows.updated_at,
                CASE
                    WHEN (versions.json IS NOT NULL) THEN readable(versions.json)
                    WHEN (ltrim(versions.definition, ' 	
'::text) ~~ '{%'::text) THEN readable(versions.definition)
                    ELSE NULL::json
                END AS definition
           FROM (named_flows
             LEFT JOIN versions ON (((versions.flow = named_flows.id) AND (versions.number = named_flows.latest))))) shown;

