import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { Command } from 'commander'
import { action, type Perform } from '../command.ts'
import { CommandError } from '../errors.ts'
import { dim, green } from '../output/style.ts'
import { shellWord } from '../output/words.ts'
import { ownVersion } from '../version.ts'
import { type Draft, projectFiles } from './init-files.ts'

interface Flags {
  readonly dryRun?: boolean
}

export function addInit(program: Command, perform: Perform): void {
  const command = program
    .command('init')
    .argument('[folder]', 'the target folder; default: the current one')
    .description('create a small working project: a configuration, a projection and a handler')
    .option('--dry-run', 'show what would be written and write nothing')
  action<Flags>(command, perform, async (ctx, [folder = '.'], { dryRun = false }) => {
    const root = resolve(ctx.io.cwd, folder)
    const drafts = projectFiles(projectName(root), ownVersion())
    const taken = drafts.filter(({ path, isOptional }) => !isOptional && existsSync(join(root, path)))
    if (taken.length > 0) {
      throw new CommandError(
        'FILE_EXISTS',
        `${taken.map(({ path }) => join(folder, path)).join(' and ')} already ${taken.length === 1 ? 'exists' : 'exist'}. Nothing was written.`,
        'Give another folder: holdfast init <folder>',
      )
    }
    const files = drafts.filter(({ path }) => !existsSync(join(root, path)))
    if (!dryRun) for (const file of files) await write(root, file)
    const missing = await missingPackages(root)
    const inFolder = relative(ctx.io.cwd, root)
    const next = [
      ...(inFolder === '' ? [] : [`cd ${shellWord(inFolder)}`]),
      missing.length > 0 ? `npm install ${missing.join(' ')}` : 'npm install',
      'npx holdfast migrate',
      `npx holdfast events append alice FundsCredited --data '{"amount":100}' --reason "a first try"`,
      'npx holdfast start',
    ]
    return {
      json: { folder: root, dryRun, written: files.map(({ path }) => path), next },
      show: (out) => {
        for (const { path } of files) out.data(green(dryRun ? 'would write' : 'wrote'), ' ', join(folder, path))
        out.talk('Next:')
        for (const line of next) out.talk(dim('  '), line)
      },
    }
  })
}

async function write(root: string, { path, text }: Draft): Promise<void> {
  const file = join(root, path)
  await mkdir(dirname(file), { recursive: true })
  // Another process may have created it since the check.
  await writeFile(file, text, { flag: 'wx' })
}

/** The packages that an existing project must install. */
async function missingPackages(root: string): Promise<string[]> {
  try {
    const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>
      devDependencies?: Record<string, string>
    }
    const has = { ...manifest.devDependencies, ...manifest.dependencies }
    return ['holdfast', 'zod'].filter((name) => !Object.hasOwn(has, name))
  } catch {
    return []
  }
}

/** A valid npm package name. */
function projectName(root: string): string {
  const name = basename(root)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
  return name === '' ? 'events' : name.slice(0, 100)
}
