accounts.id text COLLATE "C" NOT NULL
accounts.name text COLLATE "C" NOT NULL
accounts.balance bigint NOT NULL
accounts.held bigint NOT NULL
accounts.revision bigint NOT NULL
accounts.created_at bigint NOT NULL
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
audit.seq bigint NOT NULL
audit.at bigint NOT NULL
audit.who text COLLATE "C" NOT NULL
audit.what text COLLATE "C" NOT NULL
audit.subject text COLLATE "C" NOT NULL
audit.detail text COLLATE "C" NOT NULL
audit_tail.no bigint NOT NULL
audit_tail.seq bigint NOT NULL
commands.id uuid NOT NULL
commands.at bigint NOT NULL
commands.balances text COLLATE "C"
firings.schedule uuid NOT NULL
firings.slot bigint NOT NULL
firings.is_manual boolean NOT NULL
firings.is_run boolean NOT NULL
firings.started uuid NOT NULL
firings.is_running boolean NOT NULL
flow_names.name text COLLATE "C" NOT NULL
flows.id uuid NOT NULL
flows.name text COLLATE "C" NOT NULL
flows.description text COLLATE "C" NOT NULL
flows.labels text COLLATE "C" NOT NULL
flows.is_template boolean NOT NULL
flows.latest bigint NOT NULL
flows.created_at bigint NOT NULL
flows.updated_at bigint NOT NULL
job_keys.queue text COLLATE "C" NOT NULL
job_keys.key text COLLATE "C" NOT NULL
job_keys.job uuid NOT NULL
job_specs.job uuid NOT NULL
job_specs.spec text COLLATE "C" NOT NULL
job_specs.payload text COLLATE "C" NOT NULL
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
outbox.sender bytea NOT NULL
outbox.seq bigint NOT NULL
outbox.part bigint NOT NULL
outbox.receiver bytea NOT NULL
outbox.at bigint NOT NULL
outbox.note text COLLATE "C" NOT NULL
outbox.is_delivered boolean NOT NULL
prices.service text COLLATE "C" NOT NULL
prices.price text COLLATE "C" NOT NULL
prices.updated_at bigint NOT NULL
queue_depths.queue text COLLATE "C" NOT NULL
queue_depths.shard bigint NOT NULL
queue_depths.pending bigint NOT NULL
queue_depths.queued bigint NOT NULL
queue_depths.running bigint NOT NULL
queue_depths.suspended bigint NOT NULL
queue_depths.retrying bigint NOT NULL
queue_depths.dead bigint NOT NULL
queue_rates.queue text COLLATE "C" NOT NULL
queue_rates.limit_key text COLLATE "C" NOT NULL
queue_rates.full_at bigint NOT NULL
queues.name text COLLATE "C" NOT NULL
queues.is_paused boolean NOT NULL
queues.limits text COLLATE "C" NOT NULL
queues.updated_at bigint NOT NULL
queues.turns bigint NOT NULL
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
runs.settled_at bigint
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
services.name text COLLATE "C" NOT NULL
services.settings text COLLATE "C" NOT NULL
services.updated_at bigint NOT NULL
snapshots.run uuid NOT NULL
snapshots.seq bigint NOT NULL
snapshots.state bytea NOT NULL
versions.id uuid NOT NULL
versions.flow uuid NOT NULL
versions.number bigint NOT NULL
versions.definition text COLLATE "C" NOT NULL
versions.form text COLLATE "C" NOT NULL
versions.lenient boolean NOT NULL
versions.status text COLLATE "C" NOT NULL
versions.note text COLLATE "C" NOT NULL
versions.created_at bigint NOT NULL

audit_tail: CHECK (no = 1)
jobs: CHECK (NOT is_dead_letter OR status = 'failed'::text AND run IS NULL)
jobs: CHECK (is_open = (status <> ALL (ARRAY['completed'::text, 'failed'::text, 'cancelled'::text])))
jobs: CHECK (is_open OR due_at IS NULL AND wake_at IS NULL)
jobs: CHECK (status = ANY (ARRAY['pending'::text, 'queued'::text, 'running'::text, 'suspended'::text, 'retrying'::text, 'completed'::text, 'failed'::text, 'cancelled'::text]))
ledger: CHECK (kind = ANY (ARRAY['charge'::text, 'settle'::text, 'refund'::text, 'deposit'::text]))
runs: CHECK ((ended_at IS NULL) = (settled_at IS NULL))
runs: CHECK ((ended_at IS NULL) = (status = ANY (ARRAY['pending'::text, 'running'::text, 'waiting'::text, 'paused'::text, 'canceling'::text])))
runs: CHECK ((owner_server IS NULL) = (owner_epoch IS NULL))
runs: CHECK ((request IS NULL) = (request_digest IS NULL))
runs: CHECK (ended_at IS NULL OR wake_at IS NULL AND owner_server IS NULL)
runs: CHECK (status = ANY (ARRAY['pending'::text, 'running'::text, 'waiting'::text, 'paused'::text, 'canceling'::text, 'completed'::text, 'failed'::text, 'canceled'::text]))

CREATE UNIQUE INDEX accounts_pkey ON public.accounts USING btree (id)
CREATE UNIQUE INDEX attempts_pkey ON public.attempts USING btree (job, number)
CREATE UNIQUE INDEX audit_pkey ON public.audit USING btree (seq)
CREATE UNIQUE INDEX audit_tail_pkey ON public.audit_tail USING btree (no)
CREATE INDEX commands_by_age ON public.commands USING btree (at)
CREATE UNIQUE INDEX commands_pkey ON public.commands USING btree (id)
CREATE INDEX firings_by_started ON public.firings USING btree (started, is_run)
CREATE UNIQUE INDEX firings_pkey ON public.firings USING btree (schedule, slot, is_manual)
CREATE INDEX firings_running ON public.firings USING btree (schedule, slot, is_manual) WHERE is_running
CREATE UNIQUE INDEX flow_names_pkey ON public.flow_names USING btree (name)
CREATE INDEX flows_by_creation ON public.flows USING btree (created_at, id)
CREATE INDEX flows_by_name ON public.flows USING btree (name, created_at, id)
CREATE UNIQUE INDEX flows_pkey ON public.flows USING btree (id)
CREATE INDEX job_keys_by_job ON public.job_keys USING btree (job)
CREATE UNIQUE INDEX job_keys_pkey ON public.job_keys USING btree (queue, key)
CREATE UNIQUE INDEX job_specs_pkey ON public.job_specs USING btree (job)
CREATE INDEX jobs_by_creation ON public.jobs USING btree (created_at, id)
CREATE INDEX jobs_by_end ON public.jobs USING btree (updated_at, id) WHERE ((NOT is_open) AND (NOT is_dead_letter) AND (run IS NULL))
CREATE INDEX jobs_by_run ON public.jobs USING btree (run) WHERE (run IS NOT NULL)
CREATE INDEX jobs_by_schedule ON public.jobs USING btree (schedule, created_at, id) WHERE (schedule IS NOT NULL)
CREATE INDEX jobs_by_wake ON public.jobs USING btree (wake_at, id) WHERE (wake_at IS NOT NULL)
CREATE INDEX jobs_dead ON public.jobs USING btree (queue, created_at, id) WHERE is_dead_letter
CREATE INDEX jobs_dead_by_fingerprint ON public.jobs USING btree (queue, fingerprint, created_at, id, updated_at) WHERE is_dead_letter
CREATE INDEX jobs_held ON public.jobs USING btree (queue, id) WHERE (status = 'running'::text)
CREATE UNIQUE INDEX jobs_pkey ON public.jobs USING btree (id)
CREATE INDEX jobs_ready_by_name ON public.jobs USING btree (name, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key = ''::text))
CREATE INDEX jobs_ready_by_queue ON public.jobs USING btree (queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key = ''::text))
CREATE UNIQUE INDEX journal_by_command ON public.journal USING btree (command)
CREATE UNIQUE INDEX journal_pkey ON public.journal USING btree (run, seq)
CREATE INDEX keyed_jobs_by_key ON public.jobs USING btree (queue, priority DESC, limit_key, due_at, id) WHERE ((status = 'queued'::text) AND (limit_key <> ''::text))
CREATE INDEX keyed_jobs_ready_by_name ON public.jobs USING btree (name, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key <> ''::text))
CREATE INDEX keyed_jobs_ready_by_queue ON public.jobs USING btree (queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (limit_key <> ''::text))
CREATE UNIQUE INDEX ledger_by_key ON public.ledger USING btree (account, md5(key))
CREATE INDEX ledger_by_run ON public.ledger USING btree (account, run, seq) WHERE (run IS NOT NULL)
CREATE UNIQUE INDEX ledger_pkey ON public.ledger USING btree (account, seq)
CREATE INDEX logs_by_fence ON public.logs USING btree (run, fence)
CREATE UNIQUE INDEX logs_pkey ON public.logs USING btree (run, entry, fence)
CREATE UNIQUE INDEX migrations_pkey ON public.migrations USING btree (number)
CREATE UNIQUE INDEX outbox_pkey ON public.outbox USING btree (sender, seq, part)
CREATE INDEX outbox_undelivered ON public.outbox USING btree (at, sender, seq, part) WHERE (NOT is_delivered)
CREATE UNIQUE INDEX prices_pkey ON public.prices USING btree (service)
CREATE UNIQUE INDEX queue_depths_pkey ON public.queue_depths USING btree (queue, shard)
CREATE INDEX queue_rates_by_end ON public.queue_rates USING btree (full_at)
CREATE UNIQUE INDEX queue_rates_pkey ON public.queue_rates USING btree (queue, limit_key)
CREATE UNIQUE INDEX queues_pkey ON public.queues USING btree (name)
CREATE UNIQUE INDEX registrations_pkey ON public.registrations USING btree (id)
CREATE INDEX run_jobs_ready_by_name ON public.jobs USING btree (name, queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (run IS NOT NULL))
CREATE INDEX run_jobs_ready_by_queue ON public.jobs USING btree (queue, priority DESC, due_at, id) WHERE ((due_at IS NOT NULL) AND (run IS NOT NULL))
CREATE INDEX runs_by_change ON public.runs USING btree (settled_at, id) WHERE (settled_at IS NOT NULL)
CREATE INDEX runs_by_creation ON public.runs USING btree (created_at, id)
CREATE INDEX runs_by_end ON public.runs USING btree (ended_at, id) WHERE (ended_at IS NOT NULL)
CREATE INDEX runs_by_owner ON public.runs USING btree (owner_server, owner_epoch, id) WHERE (owner_server IS NOT NULL)
CREATE INDEX runs_by_parent ON public.runs USING btree (parent_run) WHERE (parent_run IS NOT NULL)
CREATE UNIQUE INDEX runs_by_request ON public.runs USING btree (request) WHERE (request IS NOT NULL)
CREATE INDEX runs_by_schedule ON public.runs USING btree (schedule, created_at, id) WHERE (schedule IS NOT NULL)
CREATE INDEX runs_by_wake ON public.runs USING btree (wake_at, id) WHERE (wake_at IS NOT NULL)
CREATE INDEX runs_failed ON public.runs USING btree (created_at, id) WHERE (status = 'failed'::text)
CREATE INDEX runs_in_need ON public.runs USING btree (account, needs) WHERE (needs IS NOT NULL)
CREATE INDEX runs_open ON public.runs USING btree (created_at, id) WHERE (ended_at IS NULL)
CREATE INDEX runs_open_by_account ON public.runs USING btree (account, created_at, id) WHERE ((ended_at IS NULL) AND (account IS NOT NULL))
CREATE UNIQUE INDEX runs_pkey ON public.runs USING btree (id)
CREATE INDEX schedules_by_next ON public.schedules USING btree (next_at, id) WHERE (next_at IS NOT NULL)
CREATE UNIQUE INDEX schedules_pkey ON public.schedules USING btree (id)
CREATE UNIQUE INDEX servers_pkey ON public.servers USING btree (id)
CREATE UNIQUE INDEX services_pkey ON public.services USING btree (name)
CREATE UNIQUE INDEX snapshots_pkey ON public.snapshots USING btree (run)
CREATE UNIQUE INDEX versions_by_number ON public.versions USING btree (flow, number)
CREATE UNIQUE INDEX versions_pkey ON public.versions USING btree (id)

VIEW entries
 SELECT journal.run,
    journal.seq,
    journal.v,
    journal.at,
    journal.command,
    journal.events
   FROM journal;
VIEW events
 SELECT journal.run,
    journal.seq,
    (one.place - 1) AS place,
    journal.at,
    (one.event ->> 'e'::text) AS kind,
    (one.event ->> 'node'::text) AS node,
    (one.event)::text AS event
   FROM journal,
    LATERAL json_array_elements((journal.events)::json) WITH ORDINALITY one(event, place);
VIEW flow_versions
 SELECT versions.flow,
    ('ver-'::text || (versions.id)::text) AS id,
    ('flow-'::text || (versions.flow)::text) AS flow_id,
    versions.number AS version,
    versions.definition AS definition_json,
    versions.status,
    (versions.created_at / 1000) AS created_at
   FROM versions;
VIEW task_queue
 SELECT jobs.id AS job,
    (((jobs.id)::text || '.'::text) || jobs.fence) AS id,
    ('task-'::text || (jobs.call_run)::text) AS task_id,
        CASE strpos(jobs.call_node, '/'::text)
            WHEN 0 THEN jobs.call_node
            ELSE regexp_replace(jobs.call_node, '/[^/]*$'::text, ''::text)
        END AS node_key,
    jobs.name AS service,
    (json_build_object('input', ((job_specs.payload)::json -> 'input'::text), 'params', ((job_specs.payload)::json -> 'params'::text), 'run_id', (((jobs.call_run)::text || '.'::text) || jobs.call_fence)))::text AS input_json,
    jobs.status,
    COALESCE(attempts.worker, ''::text) AS worker_id,
    (jobs.created_at / 1000) AS created_at,
    COALESCE((attempts.started_at / 1000), (0)::bigint) AS started_at,
    COALESCE((LEAST((((jobs.state)::json ->> 'lease_until'::text))::bigint, (((jobs.state)::json ->> 'deadline'::text))::bigint) / 1000), (0)::bigint) AS timeout_at
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
    shown.status,
    shown.worker AS worker_id,
    to_char((to_timestamp((((shown.started_at)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text) AS started_at,
    to_char((to_timestamp((((shown.finished_at)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text) AS finished_at,
    shown.result,
    ((shown.error)::json ->> 'message'::text) AS error,
    to_char((to_timestamp((((shown.next_retry_at)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text) AS next_retry_at,
    to_char((to_timestamp((((shown.created_at)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text) AS created_at
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
    ('task-'::text || (runs.id)::text) AS id,
    ('ver-'::text || (runs.version)::text) AS flow_version_id,
    ('flow-'::text || (runs.flow)::text) AS flow_id,
    flows.name AS flow_name,
    versions.number AS flow_version,
        CASE
            WHEN ((runs.status = 'running'::text) AND (runs.owner_server IS NULL)) THEN 'waiting_queue'::text
            WHEN ((runs.status = 'waiting'::text) AND (runs.step_count = 0)) THEN 'pending'::text
            WHEN ((runs.status = 'waiting'::text) OR (runs.status = 'paused'::text)) THEN 'running'::text
            ELSE runs.status
        END AS status,
    COALESCE(( SELECT ((((journal.events)::json -> 0) -> 'params'::text))::text AS text
           FROM journal
          WHERE ((journal.run = runs.id) AND (journal.seq = 1))), '{}'::text) AS params_json,
    COALESCE(runs.shared, '{}'::text) AS shared_json,
    COALESCE(runs.node, ''::text) AS current_node_key,
    COALESCE(runs.action, ''::text) AS last_action,
    runs.step_count,
    '{}'::text AS retry_state_json,
    COALESCE(servers.name, ''::text) AS lease_owner,
    COALESCE(((servers.beat_at + 10000) / 1000), (0)::bigint) AS lease_expiry,
    COALESCE(runs.request, ''::text) AS request_id,
    (runs.created_at / 1000) AS created_at,
    (runs.updated_at / 1000) AS updated_at
   FROM (((runs
     LEFT JOIN flows ON ((flows.id = runs.flow)))
     LEFT JOIN versions ON ((versions.id = runs.version)))
     LEFT JOIN servers ON (((servers.id = runs.owner_server) AND (servers.epoch = runs.owner_epoch))));
VIEW workers
 SELECT registrations.id,
    registrations.name,
    registrations.url,
    registrations.kind,
    registrations.kind AS type,
    registrations.services,
    registrations.services AS services_json,
    registrations.queues,
    registrations.load,
    registrations.capacity,
    registrations.registered_at,
    registrations.beat_at,
    (registrations.beat_at / 1000) AS last_heartbeat,
    to_char((to_timestamp((((registrations.beat_at)::numeric / 1000.0))::double precision) AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text) AS heartbeat_at,
        CASE
            WHEN (((registrations.beat_at / 1000))::numeric >= (EXTRACT(epoch FROM now()) - (15)::numeric)) THEN 'online'::text
            ELSE 'offline'::text
        END AS status
   FROM registrations;

