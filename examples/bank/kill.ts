import { type Claim, Crew, type CrewOptions, describeEnd, type Member } from './crew.ts'

/** What happened to the engines' processes. */
export interface EngineFacts {
  /** How many work at the same time. */
  readonly processes: number
  /** What ended the one that was to be killed: SIGKILL, or it went by itself before it could be. */
  readonly endedBy: string
  /** How many events had their outcome in the store then, of how many that were appended. */
  readonly done: number
  readonly appended: number
  /** The partitions that the dead one owned: the last position it told of, and where the next owner took each up. */
  readonly lost: readonly { readonly partition: number; readonly told: number; readonly takenUpAt: number }[]
  /** From the kill to the first commit on one of them. */
  readonly recoveredInMs: number
  /** How many events had their outcome when a new process came, and how many partitions it got. */
  readonly resumedAt: number
  readonly joinedWith: number
  /** Of the process that did most, while there was more to do than it could do at once. */
  readonly perSecond: number
}

export interface Bank extends CrewOptions {
  readonly processes: number
  readonly partitions: number
  /** The first commit with which this many events are done is the last that its process lives to tell. */
  readonly killAt: number
  /** Lets the engines work, which wait for it. */
  readonly begin: () => Promise<void>
  /** How far everything is, as the store has it. */
  readonly look: () => Promise<{ readonly done: number; readonly appended: number }>
  readonly say: (what: string) => void
}

/** Something is wrong if those who are left take longer than this. */
const patienceMs = 60_000

/**
 * Runs the engines and kills one of them in the middle of its work. If others are there, they take its partitions over while they go
 * on with their own; in any case a new process comes in its place. All of them run up to the end of the log.
 */
export async function runAndKill(bank: Bank, allAppended: Promise<unknown>): Promise<EngineFacts> {
  const crew = new Crew(bank)
  const hasShare = (member: Member) => crew.partitionsOf(member).length >= Math.floor(bank.partitions / bank.processes)
  const tellWork = ({ process }: Member) => bank.say(`an engine works as process ${process.pid}`)

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
  bank.say(`the engine of process ${victim.process.pid} was killed with -9 when ${where.done} events were done`)

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

/** Who has just committed, when enough is done and all have done something: one that is idle would not die in the middle of anything. */
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

/** Of the process that did most. */
function rateOf(members: readonly Member[]): number {
  const work = members.map((member) => {
    if (member.drained) return member.drained
    throw new Error(`An engine ended early, with ${describeEnd(member)}.`)
  })
  const [most] = work.toSorted((a, b) => b.events - a.events)
  return most ? Math.round((most.events / most.busyMs) * 1_000) : 0
}
