// Which services the tests can have besides PostgreSQL, which comes with the devDependencies.
//
//   npm run services              prints what was found
//   npm run services -- --install installs what is missing with apt-get, if this user may
//   npm run services -- --json    the same as one JSON object
//
// For each: an environment variable, then a program of this machine, then apt-get. Every step has a timeout.
import { execFile } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs, promisify } from 'node:util'

const run = promisify(execFile)

/**
 * `url`: a server that runs. `command`: a program that a test starts for itself. `missing`: why there is neither.
 *
 * @typedef {{ name: string, url: string } | { name: string, command: string } | { name: string, missing: string }} Offer
 * @typedef {{ redis: Offer, pgbouncer: Offer, pgdump: Offer }} Services
 */

const known = {
  redis: { name: 'Redis', program: 'redis-server', package: 'redis-server', variable: 'REDIS_URL' },
  pgbouncer: { name: 'PgBouncer', program: 'pgbouncer', package: 'pgbouncer', variable: 'PGBOUNCER' },
  pgdump: { name: 'pg_dump', program: 'pg_dump', package: 'postgresql-client', variable: 'PG_DUMP' },
}

const versionMs = 5_000
const updateMs = 90_000
const installMs = 120_000

/**
 * @param {{ install?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<Services>}
 */
export async function findServices({ install = false, env = process.env } = {}) {
  const first = await look(env)
  const missing = Object.entries(first).flatMap(([key, offer]) => ('missing' in offer ? [key] : []))
  if (!install || missing.length === 0) return first
  const failure = await installAll(missing.map((key) => known[/** @type {keyof Services} */ (key)].package))
  const second = await look(env)
  for (const [key, offer] of Object.entries(second)) {
    if ('missing' in offer && failure) second[/** @type {keyof Services} */ (key)] = { ...offer, missing: failure }
  }
  return second
}

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Services>}
 */
async function look(env) {
  const { redis, pgbouncer, pgdump } = known
  const found = await Promise.all([find(redis, env), find(pgbouncer, env), find(pgdump, env)])
  return { redis: found[0], pgbouncer: found[1], pgdump: found[2] }
}

/**
 * @param {typeof known.redis} service
 * @param {NodeJS.ProcessEnv} env
 * @returns {Promise<Offer>}
 */
async function find({ name, program, variable }, env) {
  const given = env[variable]
  if (given && variable === 'REDIS_URL') return { name: `${name} of ${variable}`, url: given }
  const command = given || locate(program, env)
  if (!command)
    return {
      name,
      missing: `${program} is not on this machine; run: npm run services -- --install, or set ${variable}`,
    }
  try {
    const { stdout } = await run(command, ['--version'], { timeout: versionMs })
    return { name: `${name} ${/\d+(\.\d+)+/.exec(stdout)?.[0] ?? ''}`.trim(), command }
  } catch (error) {
    return { name, missing: `${command} --version failed: ${messageOf(error)}` }
  }
}

/**
 * @param {string} program
 * @param {NodeJS.ProcessEnv} env
 * @returns {string | undefined}
 */
function locate(program, env) {
  // Debian keeps servers in sbin, which is not on the PATH of most users.
  const folders = [...(env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin', '/usr/bin', '/usr/local/bin']
  return folders.map((folder) => join(folder || '.', program)).find(isExecutable)
}

/** @param {string} path */
function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/**
 * @param {string[]} packages
 * @returns {Promise<string | undefined>} why it could not be done
 */
async function installAll(packages) {
  const options = ['-o', 'DPkg::Lock::Timeout=60', '-y', '--no-install-recommends']
  const install = () => aptGet(['install', ...options, ...packages], installMs)
  try {
    await install()
  } catch {
    try {
      // The lists of packages may be missing or old.
      await aptGet(['update'], updateMs)
      await install()
    } catch (error) {
      return `apt-get could not install ${packages.join(' and ')}: ${messageOf(error)}`
    }
  }
  return undefined
}

/**
 * Who is not root needs a sudo that asks for no password.
 *
 * @param {string[]} args
 * @param {number} timeout
 */
function aptGet(args, timeout) {
  const command = ['env', 'DEBIAN_FRONTEND=noninteractive', 'apt-get', ...args]
  const [program = '', ...rest] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command]
  return run(program, rest, { timeout })
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({
    options: { install: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
  })
  const services = await findServices(values)
  if (values.json) console.log(JSON.stringify(services))
  else {
    for (const offer of Object.values(services)) {
      if ('missing' in offer) console.log(`${offer.name}: missing; ${offer.missing}`)
      else console.log(`${offer.name}: ${'url' in offer ? 'the server that it names' : offer.command}`)
    }
  }
}
