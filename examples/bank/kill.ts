import { type Claim, Crew, type CrewOptions, describeEnd, type Member } from './crew.ts'

/** The history of the engine processes. */
export interface EngineFacts {
  /** How many run at the same time. */
  readonly processes: number
  /** How the chosen process ended: by SIGKILL, or by itself before the kill. */
  readonly endedBy: string
  /** How many events were processed by then, and how many were appended. */
  readonly done: number
  readonly appended: number
  /** The partitions of the killed process: the last position that it reported, and the position where the next owner continued. */
  readonly lost: readonly { readonly partition: number; readonly told: number; readonly takenUpAt: number }[]
  /** The time from the kill to the first commit on one of these partitions. */
  readonly recoveredInMs: number
  /** How many events were processed when a new process started, and how many partitions it got. */
  readonly resumedAt: number
  readonly joinedWith: number
  /** The rate of the busiest process while there was a backlog. */
  readonly perSecond: number
}

export interface Bank extends CrewOptions {
  readonly processes: number
  readonly partitions: number
  /** The process whose commit reaches this number of events is killed. */
  readonly killAt: number
  /** Starts the work of the waiting engines. */
  readonly begin: () => Promise<void>
  /** The progress according to the store. */
  readonly look: () => Promise<{ readonly done: number; readonly appended: number }>
  readonly say: (what: string) => void
}

/** The time limit for the remaining processes. */
const patienceMs = 60_000

/**
 * Runs the engines and kills one of them while it works. Other engines take over its partitions and continue with their own. A new process
 * replaces the killed one. All processes run to the end of the log.
 */
export async function runAndKill(bank: Bank, allAppended: Promise<unknown>): Promise<EngineFacts> {
  const crew = new Crew(bank)
  const hasShare = (member: Member) => crew.partitionsOf(member).length >= Math.floor(bank.partitions / bank.processes)
  const tellWork = ({ process }: Member) => bank.say(`an engine runs in process ${process.pid}`)

  const members = Array.from({ length: bank.processes }, () => crew.start())
  await crew.until(() => members.every(hasShare))
  members.forEach(tellWork)
  await bank.begin()

  const victim = await findVictim(crew, members, bank.killAt)
  const claimsBefore = [...crew.claims]
  const lost = crew.partitionsOf(victim)
  const killedAt = performance.now()
  await crew.kill(victim)
  const where = await bank.look()
  bank.say(
    `the engine of process ${victim.process.pid} was killed with SIGKILL when ${where.done} events were processed`,
  )

  const claimsOf = (partition: number, claims: readonly Claim[]) => claims.filter((one) => one.partition === partition)
  const nextClaim = (partition: number) => claimsOf(partition, crew.claims.slice(claimsBefore.length)).at(0)
  const firstCommits = () => lost.flatMap((partition) => nextClaim(partition)?.firstCommitAt ?? [])
  const patience = AbortSignal.timeout(patienceMs)
  const others = members.filter((member) => member !== victim)
  if (others.length > 0) await crew.until(() => firstCommits().length > 0, patience)
  const newcomer = crew.start()
  await crew.until(() => hasShare(newcomer) && lost.every(nextClaim) && firstCommits().length > 0, patience)
  tellWork(newcomer)
  const joinedWith = crew.partitionsOf(newcomer).length

  await allAppended
  await crew.finish([...others, newcomer])
  return {
    processes: bank.processes,
    endedBy: describeEnd(victim),
    ...where,
    lost: lost.map((partition) => ({
      partition,
      told: claimsOf(partition, claimsBefore).at(-1)?.upTo ?? Number.NaN,
      takenUpAt: nextClaim(partition)?.from ?? Number.NaN,
    })),
    recoveredInMs: Math.round(Math.min(...firstCommits()) - killedAt),
    resumedAt: newcomer.found,
    joinedWith,
    perSecond: rateOf([...others, newcomer]),
  }
}

/** The process that has just committed, if enough is done and all processes have done something: killing an idle process proves nothing. */
async function findVictim(crew: Crew, members: readonly Member[], killAt: number): Promise<Member> {
  const seen = new Map<Member, number>()
  let busy: Member | undefined
  await crew.until(() => {
    busy = members.find((member) => member.committed > (seen.get(member) ?? 0))
    for (const member of members) seen.set(member, member.committed)
    return busy !== undefined && crew.done >= killAt && members.every(({ committed }) => committed > 0)
  })
  return busy as Member
}

/** The rate of the busiest process. */
function rateOf(members: readonly Member[]): number {
  const work = members.map((member) => {
    if (member.drained) return member.drained
    throw new Error(`An engine ended early, with ${describeEnd(member)}.`)
  })
  const [most] = work.toSorted((a, b) => b.events - a.events)
  return most ? Math.round((most.events / most.busyMs) * 1_000) : 0
}
