import type { Bug } from '../bug.ts'

export const deathBugs: readonly Bug[] = [
  {
    name: 'alone-again-and-again',
    tells:
      'Events that hang are tried alone after a death, one after the other, for ever, and another partition never gets its turn.',
    file: 'src/engine/crash/exclusive-run.ts',
    find: `    if (isTaken || this.#isBehind(asking)) return`,
    replace: `    if (isTaken) return`,
    suite: ['src/engine/crash/exclusive-run.test.ts'],
  },
  {
    name: 'one-trial-after-the-other',
    tells: 'As long as one partition has events to try alone after a death, nothing else in the process goes on.',
    file: 'src/engine/handler/attempts.ts',
    find: `    this.#isTurnedAway = isAnother && !parts.exclusiveRun.hasTime(this.#asking)
`,
    replace: `    this.#isTurnedAway = false && isAnother
`,
    suite: ['src/engine/handler/attempts.test.ts'],
  },
  {
    name: 'turned-away-without-a-place',
    tells: 'A healthy handler stands still for as long as others in its process are tried alone by turns.',
    file: 'src/engine/handler/attempts.ts',
    find: `    if (!this.#isTurnedAway) this.#comeForth()`,
    replace: `    this.#comeForth()`,
    suite: ['src/engine/handler/attempts.test.ts'],
  },
  {
    name: 'place-kept-by-who-is-gone',
    tells:
      'Whoever is paused or loses its partition while it waits for its turn keeps everybody behind it waiting for ever.',
    file: 'src/engine/crash/exclusive-run.ts',
    find: `    if (!this.#waiting.delete(asking) && !holder) return`,
    replace: `    if (!holder) return`,
    suite: ['src/engine/crash/exclusive-run.test.ts'],
  },
  {
    name: 'called-and-never-comes',
    tells:
      'Where the source of one handler does not answer, everything else in the process may wait for it after a death.',
    file: 'src/engine/crash/exclusive-run.ts',
    find: `      if (now - calledAt > graceMs) this.leave(other)
      else if`,
    replace: `      if`,
    suite: ['src/engine/crash/exclusive-run.test.ts'],
  },
  {
    name: 'no-time-for-the-next',
    tells:
      'Hundreds of quick events that may have killed a process have to wait for the slow ones of others, each of them.',
    file: 'src/engine/crash/exclusive-run.ts',
    find: `this.#clock.mono() - this.#holder.since < sliceMs`,
    replace: `this.#clock.mono() < this.#holder.since`,
    suite: ['test/engine/turns.test.ts'],
  },
  {
    name: 'one-thing-each-between-two-that-hang',
    tells:
      'While somebody’s service hangs for hours, everything else in the process begins one thing after each call that hangs.',
    file: 'src/engine/crash/exclusive-run.ts',
    find: `this.#freeUntil = now + now - since`,
    replace: `this.#freeUntil = now`,
    suite: ['src/engine/crash/exclusive-run.test.ts', 'test/engine/turns.test.ts'],
  },
  {
    name: 'token-before-its-turn',
    tells: 'A retry that may begin only now and then spends that on asking for its turn, and never begins.',
    file: 'src/engine/handler/attempts.ts',
    find: `      this.#isTurnedAway = isBeside && (suspicion.trying !== undefined || !parts.exclusiveRun.begin(this.#asking))
      if (this.#isTurnedAway) break
      const waitMs = this.#waitMs(entry)
`,
    replace: `      const waitMs = this.#waitMs(entry)
      this.#isTurnedAway = isBeside && (suspicion.trying !== undefined || !parts.exclusiveRun.begin(this.#asking))
      if (this.#isTurnedAway) break
`,
    suite: ['src/engine/handler/attempts.test.ts', 'test/engine/turns.test.ts'],
  },
  {
    name: 'not-alone-while-nobody-knows',
    tells:
      'An event of a projection is blamed for a death that another one caused, because the answer of the store got lost.',
    file: 'src/engine/crash/page-trials.ts',
    find: `this.#suspicion.trying !== undefined || this.#isAsking`,
    replace: `this.#suspicion.trying !== undefined`,
    suite: ['test/engine/turns.test.ts', 'src/engine/crash/page-trials.test.ts'],
  },
  {
    name: 'suspended-before-it-is-known',
    tells:
      'An event is blamed for a death that another one caused, because it was paused while the answer of the store got lost.',
    file: 'src/engine/handler/attempts.ts',
    find: `const isNext = this.#wanted !== undefined || this`,
    replace: `const isNext = this`,
    suite: ['src/engine/handler/attempts.test.ts', 'test/engine/turns.test.ts'],
  },
  {
    name: 'nothing-kept-while-the-source-is-away',
    tells:
      'What a handler did is not kept while its source is away, and everything else in the process waits for that after a death.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `    const done = await this.#takeOn(failed !== undefined)
`,
    replace: `    if (failed) throw failed.error
    const done = await this.#takeOn(false)
`,
    suite: ['test/engine/turns.test.ts'],
  },
  {
    name: 'in-doubt-for-as-long-as-the-source-is-away',
    tells:
      'The answer of the store got lost and the source is away: everything else in the process waits until that comes back.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    if (this.#trials.isOnTrial) await`,
    replace: `    if (this.#trials.isOnTrial && this.#partition) await`,
    suite: ['src/engine/projection/page-loop.test.ts', 'test/engine/turns.test.ts'],
  },
  {
    name: 'reads-while-somebody-is-on-trial',
    tells:
      'A source that does not answer keeps the end of a trial from the store, and everything else in the process waits for it.',
    file: 'src/engine/handler/handler-loop.ts',
    find: `!this.#isLettingFlow && this.#state.suspicion.trying === undefined && this.#attempts.wanted === undefined`,
    replace: `!this.#isLettingFlow`,
    suite: ['test/engine/turns.test.ts'],
  },
  {
    name: 'on-trial-though-nothing-is-left',
    tells: 'Somebody discards an event that is on trial, and everything else in the process waits for it for ever.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    if (this.#trials.isOnTrial) await this.#standDown()
`,
    replace: ``,
    suite: ['src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'runs-while-it-reads',
    tells:
      'A projection whose source never answers counts as running, and nothing in its process can be tried alone after a death.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    const after = this.#ownership.seen as number
    const page = await this.#reading.read(after, this.#limits())
    const { events: records } = page
    const [first] = records
    if (!first) return this.#pass(partition, page)
    if (!this.#isAdmitted()) {
      this.#reading.putBack(after, page)
      return 'idle'
    }
`,
    replace: `    if (!this.#isAdmitted()) return 'idle'
    const page = await this.#reading.read(this.#ownership.seen as number, this.#limits())
    const { events: records } = page
    const [first] = records
    if (!first) return this.#pass(partition, page)
`,
    suite: ['test/engine/turns.test.ts'],
  },
  {
    name: 'alone-between-two-events',
    tells:
      'A source that does not answer after a quick event that was tried alone keeps everything else in the process waiting for ever.',
    file: 'src/engine/crash/exclusive-run.ts',
    find: `this.#holder = { ...holder, outSince: this.#clock.mono() }`,
    replace: `this.#holder = holder`,
    suite: ['src/engine/crash/exclusive-run.test.ts', 'test/engine/turns.test.ts'],
  },
  {
    name: 'projection-turned-away-without-a-place',
    tells:
      'A healthy projection is not told when it may begin, and is behind all others that are tried alone by turns.',
    file: 'src/engine/projection/page-loop.ts',
    find: `      if (!this.#isWaiting) this.#trials.dismiss(isNext)`,
    replace: `      this.#trials.dismiss(isNext)`,
    suite: ['src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'too-few-suspects-in-turn',
    tells:
      'A letter that kills whoever lets it go kills more processes than it should, because others have their turn before it.',
    file: 'src/engine/projection/page-loop.ts',
    find: `Math.min(2 * pageEvents * heldLanes, mostInTurn)`,
    replace: `Math.min(2 * pageEvents, mostInTurn)`,
    suite: ['src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'own-word-from-before',
    tells:
      'A process that gets a partition back dies of something else, and an event that it had tried alone long before is blamed.',
    file: 'src/engine/process/worker.ts',
    find: `    if (isAccused) await`,
    replace: `    if (isAccused && !this.#wasClaimed) await`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'postponed-stays-on-trial',
    tells:
      'An event that has to wait for its turn after a death is tried alone in name for as long, and nothing else goes on.',
    file: 'src/engine/handler/attempts.ts',
    find: `        if (isSuspect) ledger.acquit(suspicion.putOff(entry.record.position))
`,
    replace: ``,
    suite: [
      'src/engine/handler/attempts.test.ts',
      'test/engine/deaths.test.ts',
      'src/engine/handler/handler-loop.test.ts',
    ],
  },
  {
    name: 'paused-projection-stays-alone',
    tells:
      'A projection that somebody pauses while it waits to be alone after a death keeps everything else in its process from going on.',
    file: 'src/engine/projection/page-loop.ts',
    find: `      this.#trials.release()
      return 'paused'`,
    replace: `      return 'paused'`,
    suite: ['src/engine/projection/page-loop.test.ts', 'test/engine/page-deaths.test.ts'],
  },
  {
    name: 'alone-though-it-is-gone',
    tells:
      'A process that loses a partition while it tries an event alone lets nothing else in it go on until it begins anew.',
    file: 'src/engine/handler/attempts.ts',
    find: `    for (const entry of this.#beside) this.#free(entry)
    this.#state.parts.exclusiveRun.leave(this.#asking)`,
    replace: `    for (const entry of this.#beside) this.#free(entry)`,
    suite: ['src/engine/handler/attempts.test.ts', 'test/engine/deaths.test.ts'],
  },
  {
    name: 'blamed-though-it-was-taken-back',
    tells: 'An event is parked for the death of a process that lives, and had said so before.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    this.#trials = this.#trials.filter((trial) => isElsewhere(trial) || isThere(trial))`,
    replace: `    if (!this.#trials.some(isThere)) return`,
    suite: ['test/engine/page-deaths.test.ts'],
  },
  {
    name: 'blamed-without-asking',
    tells: 'An event is parked for the death of a process that lives, and has said so since this one took over.',
    file: 'src/engine/handler/attempts.ts',
    find: `&& this.#recalled !== record.position`,
    replace: `&& this.#recalled === Number.NaN`,
    suite: ['test/engine/page-deaths.test.ts', 'src/engine/handler/attempts.test.ts'],
  },
  {
    name: 'words-about-everything-never-taken-back',
    tells:
      'An event is parked one death too early, because a process that had tried everything with it was only stopped for a while.',
    file: 'src/engine/crash/suspicion.ts',
    find: `one.position !== position && one.position !== everything`,
    replace: `one.position !== position`,
    suite: ['src/engine/crash/suspicion.test.ts'],
  },
  {
    name: 'own-ends-taken-for-somebody-elses',
    tells:
      'An event is parked for one death although another event killed a process too, because that one went through meanwhile.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    this.#trials = this.#trials.filter((trial) => isElsewhere(trial) || isThere(trial))`,
    replace: `    this.#trials = this.#trials.filter((trial) => trials.some((one) => one.position === trial.position))`,
    suite: ['src/engine/crash/suspicion.test.ts'],
  },
  {
    name: 'deadly-event-never-alone',
    tells: 'An event that kills its process is tried for ever, and takes the process with it each time.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    this.#mode = !isInherited ? 'none' : mayDieOnce ? 'watched' : 'alone'`,
    replace: `    this.#mode = !isInherited ? 'none' : mayDieOnce ? 'watched' : 'watched'`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'attempt-recorded-afterwards',
    tells: 'Of an event that kills its process nothing is ever on record, so it is tried for ever.',
    file: 'src/engine/handler/attempts.ts',
    find: `    return trial === undefined`,
    replace: `    return true`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'slow-events-are-blamed',
    tells: 'A healthy event that takes long is parked because processes were killed from outside while it ran.',
    file: 'src/engine/crash/suspicion.ts',
    find: `(this.#isWatched(instance) ? lateWeight : 1)`,
    replace: `(this.#isWatched(instance) ? 1 : 1)`,
    suite: ['src/engine/crash/suspicion.test.ts'],
  },
  {
    name: 'first-in-line-is-blamed',
    tells: 'Something kills processes soon after they start, and the event that is always the first is parked for it.',
    file: 'src/engine/handler/attempts.ts',
    find: `      if (controlMs > 0) {`,
    replace: `      if (controlMs > Number.POSITIVE_INFINITY) {`,
    suite: ['test/regressions/kills-from-outside-are-seldom-blamed.test.ts'],
  },
  {
    name: 'stop-counts-as-a-death',
    tells: 'A process that is killed while it finishes what is under way counts as one that an event has killed.',
    file: 'src/engine/process/worker.ts',
    find: `    if (!this.#isLeaving || !lease || !this.#loop?.isBusy) return`,
    replace: `    if (this.#isLeaving || !lease || !this.#loop?.isBusy) return`,
    suite: ['test/regressions/a-stop-that-is-cut-short-is-not-a-death.test.ts'],
  },
  {
    name: 'neighbours-are-blamed',
    tells: 'Healthy events are parked because a process died while they were at hand.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    const alone = this.#trials.filter((trial) => trial.position === position)`,
    replace: `    const alone = this.#trials`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'living-processes-count-as-dead',
    tells: 'A process that was only stopped for a while gets the event at hand parked, though nobody died over it.',
    file: 'src/engine/process/worker.ts',
    find: `    if (!this.#loop?.mayHaveTrials) return
    const acquit`,
    replace: `    if (!this.#loop?.mayHaveTrials || this.#wasClaimed) return
    const acquit`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'begun-without-a-word',
    tells: 'After a death nobody knows what may have been begun, and the next process does not go carefully.',
    file: 'src/engine/handler/begin-window.ts',
    find: `    return position <= this.#through || (position <= this.#ahead && now < this.#aheadUntil)`,
    replace: `    return position <= this.#through || position > 0`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'not-alone-when-it-counts',
    tells: 'While one event is on trial others run beside it, and it is blamed for what they do.',
    file: 'src/engine/handler/attempts.ts',
    find: `this.#isAlone(entry) && (!this.#canEnter() || running.size > 0)`,
    replace: `this.#isAlone(entry) && running.size > 0`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'death-forgotten-at-a-handover',
    tells:
      'Who takes over from the dead and hands the partition on before it is tried again makes everybody forget the death.',
    file: 'src/engine/process/worker.ts',
    find: `this.#loop?.isSuspect ?? this.#isInherited`,
    replace: `false`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'who-waits-is-no-suspect',
    tells:
      'An event that has killed its process and has to wait for its breaker is forgotten as a suspect, and kills more processes than it should.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    if (holding.status === 'waiting') suspects.wait(entry)
`,
    replace: ``,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'first-outcome-ends-the-suspicion',
    tells:
      'A projection with lanes to let go forgets that processes died with the first of them, and the event that comes next kills more.',
    file: 'src/engine/crash/page-trials.ts',
    find: `    this.#suspects = suspects`,
    replace: `    this.#suspects = this.#suspicion.isAlone ? suspects : 1`,
    suite: ['test/engine/page-deaths.test.ts'],
  },
  {
    name: 'failure-makes-up-for-deaths',
    tells: 'An event that fails now and then, and kills otherwise, takes one process after the other with it.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    else ledger.acquit(suspicion.putOff(position))`,
    replace: `    else ledger.endTrials(suspicion.over(position))`,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'nobody-is-followed',
    tells: 'An event that fails first, and kills when it is tried again, kills for as long as its policy is patient.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    return this.#mode !== 'watched' && this.#followed.has(position)`,
    replace: `    return false && this.#followed.has(position)`,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'own-failures-not-followed',
    tells: 'An event kills without end where its policy tries again what is its own fault, and it kills only then.',
    file: 'src/engine/handler/verdicts.ts',
    find: `    if (tried) this.#follow(entry)`,
    replace: `    if (tried && !isOwn) this.#follow(entry)`,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'refusals-outlive-a-throw',
    tells:
      'An event that is let go is parked again without a try, by the process that never heard that it had parked it.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    } catch (error) {
      this.#isInDoubt = true
      throw error`,
    replace: `    } catch (error) {
      throw error`,
    suite: ['test/engine/page-deaths.test.ts', 'src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'refusals-outlive-a-person',
    tells: 'An event that was mended while it was about to be parked is parked for what it was before.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    this.#isInDoubt = true
    return this.#ownership.refuse(result)`,
    replace: `    return this.#ownership.refuse(result)`,
    suite: ['src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'let-go-and-still-accused',
    tells: 'An event that a person lets go is parked again without a try, for those who died before it was mended.',
    file: 'src/engine/projection/page-loop.ts',
    find: `endedTrials: [task.position], redriven`,
    replace: `endedTrials: [], redriven`,
    suite: ['test/engine/page-deaths.test.ts'],
  },
  {
    name: 'let-go-without-a-word',
    tells: 'An event that is let go kills without end: each time those who died over it are forgotten.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    const refused = await this.#write({ endedTrials: [task.position], redriven }, outcome)
    if (refused) return refused
    this.#batches.accept(outcome, false)
    return 'worked'`,
    replace: `    return this.#write({ endedTrials: [task.position] })`,
    suite: ['test/engine/page-deaths.test.ts'],
  },
  {
    name: 'refused-again-with-every-failure',
    tells: 'Where many rows of a page are refused, and the store fails now and then, the page is never done.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    for (const refused of this.#refusals.keys()) if (refused <= position) this.#refusals.delete(refused)`,
    replace: `    this.#trust()`,
    suite: ['src/engine/projection/page-loop.test.ts'],
  },
  {
    name: 'discarded-and-tried-after-deaths',
    tells: 'An event that a person discards is applied, while events are tried one by one after deaths.',
    file: 'src/engine/projection/page-loop.ts',
    find: `    if (!task || endsHead(task)) return undefined`,
    replace: `    if (!task) return undefined`,
    suite: ['test/engine/page-deaths.test.ts'],
  },
  {
    name: 'followed-without-the-dead',
    tells:
      'That others died over an event is forgotten as soon as it fails, so it kills more processes than it should.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    return this.trials.filter((position) => !this.#followed.has(position))`,
    replace: `    return this.trials`,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'not-followed-by-the-next',
    tells: 'An event that kills when it is tried again is forgotten whenever its partition is handed on.',
    file: 'src/engine/crash/suspicion.ts',
    find: `if (heads.has(position)) this.#followed`,
    replace: `if (heads.has(-1)) this.#followed`,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'followed-for-ever',
    tells: 'An event that fails for days is parked for the death of processes that something else has killed.',
    file: 'src/engine/crash/suspicion.ts',
    find: `    return failures < this.#maxDeaths ? [] :`,
    replace: `    return failures < 1_000 ? [] :`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'parked-ones-are-followed',
    tells: 'What was parked for deaths is parked again without a try when somebody lets it go with the code mended.',
    file: 'src/engine/handler/handler-state.ts',
    find: `(status === 'parked' ? [] : headPosition)`,
    replace: `(status === 'waiting' ? [] : headPosition)`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'followed-one-after-the-other',
    tells: 'While some events that failed after deaths are tried alone, nothing new of their partition is even read.',
    file: 'src/engine/handler/attempts.ts',
    find: `    if (commit.trial && suspicion.follows(commit.trial.position)) this.#isOthersTurn = true
`,
    replace: ``,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'alone-while-it-reads',
    tells:
      'A handler whose source does not answer, with an event that is to be tried alone, keeps everything else waiting.',
    file: 'src/engine/handler/attempts.ts',
    find: `    const isLate = this.#isReading && suspicion.trying === undefined`,
    replace: `    const isLate = false && suspicion.trying === undefined`,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'decided-and-still-accused',
    tells:
      'What a person lets go with the code mended is parked again without a try, and what they ended stays on trial.',
    file: 'src/engine/handler/redrive-start.ts',
    find: `    ledger.endTrials(suspicion.forget(position))
`,
    replace: ``,
    suite: ['test/engine/followed.test.ts'],
  },
  {
    name: 'comes-forth-while-it-asks',
    tells:
      'Two partitions with an event to blame each ask the store about that in turns, as fast as they can, for ever.',
    file: 'src/engine/handler/attempts.ts',
    find: `this.#wanted !== undefined || this.#accused !== undefined`,
    replace: `this.#wanted !== undefined`,
    suite: ['test/engine/deaths.test.ts'],
  },
  {
    name: 'let-off-and-still-on-trial',
    tells: 'An event that is parked by its policy while it is followed keeps its process to itself for ever.',
    file: 'src/engine/crash/suspicion.ts',
    find: ` || isFollowed || this.#trial?.position === position`,
    replace: ` || isFollowed`,
    suite: ['src/engine/crash/suspicion.test.ts', 'test/sim/sim.test.ts'],
  },
  {
    name: 'acquitted-of-what-it-begins',
    tells: 'What is tried alone next is not on record where the last had to be put off, so it can kill for ever.',
    file: 'src/sqlite/subscription/trials.ts',
    find: `  if (acquitted !== undefined) acquit(db, subscription, partition, acquitted)
  for (const position of endedTrials) db.run(endSql, subscription, partition, position)
  if (trial) db.run(beginSql, subscription, partition, trial.position, trial.instance)`,
    replace: `  for (const position of endedTrials) db.run(endSql, subscription, partition, position)
  if (trial) db.run(beginSql, subscription, partition, trial.position, trial.instance)
  if (acquitted !== undefined) acquit(db, subscription, partition, acquitted)`,
    suite: ['src/sqlite/contract.test.ts'],
  },
]
