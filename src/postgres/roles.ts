import { HoldfastError } from '../errors.ts'
import { checkOptions } from '../runtime/options.ts'
import { checkSchema, quote } from './identifier.ts'

export interface RoleNames {
  /** 'holdfast' unless you say otherwise. */
  readonly schema?: string
  /** Owns the schema and everything in it: brings it up to date, and makes the tables of projections. */
  readonly migrator: string
  /**
   * Appends to the log, runs subscriptions and does what people ask for. It can't change what is in the log or in the audit, nor make a
   * table.
   */
  readonly engine: string
  /** Reads everything but what handlers were answered, and changes nothing. */
  readonly reader: string
}

/** What the engine may do with each of our tables besides reading it. */
const engineRights = {
  holdfast_events: 'INSERT',
  holdfast_subscriptions: 'INSERT',
  holdfast_partitions: 'INSERT, UPDATE',
  holdfast_members: 'INSERT, UPDATE, DELETE',
  holdfast_lanes: 'INSERT, UPDATE, DELETE',
  // To purge what was resolved long ago.
  holdfast_letters: 'INSERT, UPDATE, DELETE',
  holdfast_incidents: 'INSERT, UPDATE, DELETE',
  holdfast_revisions: 'INSERT, UPDATE, DELETE',
  holdfast_redrives: 'INSERT, UPDATE, DELETE',
  holdfast_redrive_lanes: 'INSERT, UPDATE, DELETE',
  holdfast_audit: 'INSERT',
  holdfast_trials: 'INSERT, UPDATE, DELETE',
  holdfast_inbox: 'INSERT, UPDATE, DELETE',
  holdfast_breakers: 'INSERT, UPDATE, DELETE',
  holdfast_dead_letters: undefined,
  holdfast_migrations: undefined,
} as const

/** What the reader may not read: results of handlers can be anything, secrets among them. */
const hidden: readonly string[] = ['holdfast_inbox']

const engineFunctions = ['holdfast_append', 'holdfast_append_one', 'holdfast_expect']
const projectionRights = 'SELECT, INSERT, UPDATE'

/**
 * The SQL that gives three roles their rights on a schema, and everybody else none. Run it when the schema is there, as a superuser
 * or as the owner of the schema with the right to make roles, and again after each release that adds to the schema. All of it
 * happens or nothing; to repeat it does no harm.
 *
 * Roles that are missing are made, without login: grant them to those who log in. Who logs in to make tables must do so as the
 * migrator itself (`ALTER ROLE deployer SET ROLE migrator`), because rights on new tables come from the role that makes them.
 */
export function rolesSql(names: RoleNames): string {
  checkOptions(names, 'rolesSql', ['schema', 'migrator', 'engine', 'reader'])
  const schemaName = checkSchema(names.schema ?? 'holdfast')
  const schema = quote(schemaName)
  const [migrator, engine, reader] = checkRoles([names.migrator, names.engine, names.reader])
  const everybodyElse = `PUBLIC, ${engine}, ${reader}`
  const tables = Object.entries(engineRights).map(([table, rights]) => {
    const name = `${schema}.${quote(table)}`
    return `
  REVOKE ALL ON ${name} FROM ${everybodyElse};
  GRANT SELECT${rights ? `, ${rights}` : ''} ON ${name} TO ${engine};${
    hidden.includes(table) ? '' : `\n  GRANT SELECT ON ${name} TO ${reader};`
  }`
  })
  return `DO $holdfast$
DECLARE
  object record;
  projections text[];
BEGIN
  IF pg_catalog.to_regclass('${schema}.holdfast_events') IS NULL THEN
    RAISE EXCEPTION 'the schema ${schemaName} is not there yet' USING HINT = 'Open the store once, as its migrator.';
  END IF;
${[migrator, engine, reader].map(makeRole).join('\n')}

  -- Before the loops: a table that is being read can't be altered.
  projections := ARRAY(SELECT table_name FROM ${schema}.holdfast_subscriptions WHERE table_name IS NOT NULL);

  -- Whoever made them, they are the migrator's. What belongs to a table or a schema goes with it.
  IF (SELECT nspowner FROM pg_catalog.pg_namespace WHERE nspname = '${schemaName}') <> '${migrator}'::regrole THEN
    ALTER SCHEMA ${schema} OWNER TO ${migrator};
  END IF;
  FOR object IN
    SELECT c.oid::regclass AS name FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = '${schema}'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND c.relowner <> '${migrator}'::regrole
      AND (c.relname LIKE 'holdfast\\_%' OR c.relname = ANY (projections))
  LOOP
    EXECUTE pg_catalog.format('ALTER TABLE %s OWNER TO ${migrator}', object.name);
  END LOOP;
  FOR object IN
    SELECT p.oid::regprocedure AS name, p.proname, p.proowner <> '${migrator}'::regrole AS is_foreign
    FROM pg_catalog.pg_proc AS p WHERE p.pronamespace = '${schema}'::regnamespace AND p.proname LIKE 'holdfast\\_%'
  LOOP
    IF object.is_foreign THEN
      EXECUTE pg_catalog.format('ALTER ROUTINE %s OWNER TO ${migrator}', object.name);
    END IF;
    EXECUTE pg_catalog.format('REVOKE ALL ON ROUTINE %s FROM ${everybodyElse}', object.name);
    IF object.proname IN (${engineFunctions.map((name) => `'${name}'`).join(', ')}) THEN
      EXECUTE pg_catalog.format('GRANT EXECUTE ON ROUTINE %s TO ${engine}', object.name);
    END IF;
  END LOOP;

  REVOKE ALL ON SCHEMA ${schema} FROM ${everybodyElse};
  GRANT USAGE ON SCHEMA ${schema} TO ${engine}, ${reader};
${tables.join('\n')}

  -- The tables of projections: those that are there, and those that will be.
  FOR object IN
    SELECT c.oid::regclass AS name FROM pg_catalog.pg_class AS c
    WHERE c.relnamespace = '${schema}'::regnamespace AND c.relname = ANY (projections)
  LOOP
    EXECUTE pg_catalog.format('REVOKE ALL ON %s FROM ${everybodyElse}', object.name);
    EXECUTE pg_catalog.format('GRANT ${projectionRights} ON %s TO ${engine}', object.name);
    EXECUTE pg_catalog.format('GRANT SELECT ON %s TO ${reader}', object.name);
  END LOOP;
  ALTER DEFAULT PRIVILEGES FOR ROLE ${migrator} IN SCHEMA ${schema} GRANT ${projectionRights} ON TABLES TO ${engine};
  ALTER DEFAULT PRIVILEGES FOR ROLE ${migrator} IN SCHEMA ${schema} GRANT SELECT ON TABLES TO ${reader};
END $holdfast$;
`
}

/** `role` is quoted. */
function makeRole(role: string): string {
  const name = role.slice(1, -1)
  return `  IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = '${name}') THEN CREATE ROLE ${role} NOLOGIN; END IF;`
}

function checkRoles(names: readonly [unknown, unknown, unknown]): [string, string, string] {
  const roles = names.map((name) => {
    const role = quote(String(name))
    // To PostgreSQL these are words and not names, with quotes too.
    if (/^"(?:public|none|pg_.*)"$/i.test(role)) throw new HoldfastError('NAME_INVALID', `${role} can't be a role.`)
    return role
  })
  if (new Set(roles).size === names.length) return roles as [string, string, string]
  throw new HoldfastError('OPTION_INVALID', `The three roles are ${roles.join(', ')}.`, { hint: 'Each is another.' })
}
