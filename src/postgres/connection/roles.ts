import { HoldfastError } from '../../errors.ts'
import { checkOptions } from '../../runtime/options.ts'
import { checkSchema, quote } from './identifier.ts'

export interface RoleNames {
  /** Default: 'holdfast'. */
  readonly schema?: string
  /** Owns the schema and everything in it: migrates it, and creates the tables of projections. */
  readonly migrator: string
  /**
   * Appends to the log, runs subscriptions and executes acts of operators. It can't change the log or the audit, and can't create
   * tables.
   */
  readonly engine: string
  /** Reads everything except the stored results of handlers, and changes nothing. */
  readonly reader: string
}

/** The permissions of the engine on each table, besides reading. */
const engineRights = {
  holdfast_events: 'INSERT',
  holdfast_subscriptions: 'INSERT',
  holdfast_partitions: 'INSERT, UPDATE',
  holdfast_members: 'INSERT, UPDATE, DELETE',
  holdfast_lanes: 'INSERT, UPDATE, DELETE',
  // To purge old resolved letters.
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

/** Tables that the reader can't read: results of handlers may contain secrets. */
const hidden: readonly string[] = ['holdfast_inbox']

const engineFunctions = ['holdfast_append', 'holdfast_append_one', 'holdfast_expect']
const projectionRights = 'SELECT, INSERT, UPDATE'

/**
 * The SQL that grants three roles their permissions on a schema, and revokes those of all other roles. Run it when the schema
 * exists, as a superuser or as the owner of the schema with permission to create roles, and again after each release that changes
 * the schema. It is one transaction and can be repeated.
 *
 * Missing roles are created without login: grant them to your login roles. A login role that creates tables must do so as the
 * migrator (`ALTER ROLE deployer SET ROLE migrator`), because default privileges depend on the role that creates a table.
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
    RAISE EXCEPTION 'the schema ${schemaName} does not exist' USING HINT = 'Open the store once as its migrator.';
  END IF;
${[migrator, engine, reader].map(makeRole).join('\n')}

  -- Before the loops: a table that is being read can't be altered.
  projections := ARRAY(SELECT table_name FROM ${schema}.holdfast_subscriptions WHERE table_name IS NOT NULL);

  -- All objects belong to the migrator, regardless of which role created them. Dependent objects follow their table or schema.
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

  -- The tables of projections: existing and future ones.
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
    // PostgreSQL treats these as keywords, also when they are quoted.
    if (/^"(?:public|none|pg_.*)"$/i.test(role)) throw new HoldfastError('NAME_INVALID', `${role} can't be a role.`)
    return role
  })
  if (new Set(roles).size === names.length) return roles as [string, string, string]
  throw new HoldfastError('OPTION_INVALID', `The three roles are ${roles.join(', ')}.`, {
    hint: 'Use three different roles.',
  })
}
