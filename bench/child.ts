import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'

export interface ChildOptions {
  readonly signal: AbortSignal
  readonly execArgv?: readonly string[]
}

/**
 * Runs the work of a file in a process of its own, which loads nothing else, and returns its answer. Node's own flags
 * (`--conditions`) are passed on.
 *
 * The caller must use little memory: on Linux a child's `maxRSS` begins at the peak of the process that started it.
 */
export function inChild<Task, Answer>(file: URL, task: Task, { signal, execArgv = [] }: ChildOptions): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let sent: { value: Answer } | undefined
    const child = fork(fileURLToPath(file), [JSON.stringify(task)], {
      signal,
      execArgv: [...process.execArgv, ...execArgv],
      // stdout is for the report.
      stdio: ['ignore', 2, 'inherit', 'ipc'],
    })
    child.on('message', (message) => {
      sent = message as { value: Answer }
    })
    child.on('error', reject)
    child.on('exit', (code, killedBy) => {
      if (code === 0 && sent) resolve(sent.value)
      else reject(new Error(`${fileURLToPath(file)} ended with ${killedBy ?? `exit ${code}`}.`))
    })
  })
}

/** The child's side: does the work it was asked for and sends the answer. */
export async function answer<Task, Answer>(work: (task: Task) => Promise<Answer> | Answer): Promise<void> {
  const value = await work(JSON.parse(process.argv[2] ?? 'null') as Task)
  process.send?.({ value })
}
