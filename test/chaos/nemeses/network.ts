import { setTimeout } from 'node:timers/promises'
import type { Proxy } from '../proxy.ts'
import { type Nemesis, pick, type Scene } from '../scene.ts'

const commitMs = 2_000
const answerMs = 1_000
const unknownTries = 10

/** Every connection of everybody, of the engines, or of one of them. */
export const cut: Nemesis = {
  name: 'cut',
  weight: 12,
  strike: async (scene) => {
    for (const proxy of someProxies(scene)) {
      const before = proxy.counts.cut
      proxy.cut()
      scene.tally.add('cuts', proxy.counts.cut - before)
    }
    await setTimeout(scene.random.below(100))
  },
}

/** Cut, and nobody listens for a while. */
export const refuse: Nemesis = {
  name: 'refuse',
  weight: 4,
  strike: async (scene) => {
    const proxies = someProxies(scene)
    for (const proxy of proxies) await proxy.refuse(true)
    try {
      for (const proxy of proxies) proxy.cut()
      scene.tally.add('cuts')
      await setTimeout(100 + scene.random.below(600))
    } finally {
      for (const proxy of proxies) await proxy.refuse(false)
    }
  },
}

/** Nothing gets through, for longer than a lease; then all of it does. */
export const blackhole: Nemesis = {
  name: 'blackhole',
  weight: 3,
  strike: async (scene) => {
    const proxies = someProxies(scene)
    for (const proxy of proxies) proxy.blackhole(true)
    try {
      await setTimeout(700 + scene.random.below(1_300))
      // Half of the time what was on its way is lost with its connection.
      if (scene.random.below(2) === 0) for (const proxy of proxies) proxy.cut()
    } finally {
      for (const proxy of proxies) proxy.blackhole(false)
    }
    scene.tally.add('cuts')
  },
}

export const delay: Nemesis = {
  name: 'delay',
  weight: 3,
  strike: async (scene) => {
    const proxies = someProxies(scene)
    for (const proxy of proxies) proxy.delay(20 + scene.random.below(60))
    try {
      await setTimeout(300 + scene.random.below(500))
    } finally {
      for (const proxy of proxies) proxy.delay(0)
    }
  },
}

/** The server never hears of the commit. */
export const cutBeforeCommit: Nemesis = {
  name: 'cut before commit',
  weight: 8,
  strike: async ({ ground, random, tally }) => {
    const proxy = pick(random, ground.engineProxies)
    const before = proxy.counts.cutBefore
    proxy.cutAtCommit('before')
    if (await until(() => proxy.counts.cutBefore > before)) tally.add('cuts')
  },
}

/** The server commits, and the engine does not hear of it. */
export const cutAfterCommit: Nemesis = {
  name: 'cut after commit',
  weight: 15,
  strike: async ({ ground, fleet, random, tally }) => {
    for (let i = 0; i < unknownTries; i++) {
      const proxy = pick(random, ground.engineProxies)
      const before = proxy.counts.cutAfter
      const answered = fleet.reports.next((report) => report.kind === 'unanswered', answerMs)
      proxy.cutAtCommit('after')
      if (!(await until(() => proxy.counts.cutAfter > before))) continue
      tally.add('cuts')
      // The cut may have met the middle of a transaction, or another end than that of a page.
      const report = await answered
      if (report?.kind === 'unanswered' && report.happened) return
    }
  },
}

function someProxies({ ground: { engineProxies, writerProxy }, random }: Scene): readonly Proxy[] {
  return pick(random, [[...engineProxies, writerProxy], engineProxies, [pick(random, engineProxies)], [writerProxy]])
}

async function until(holds: () => boolean): Promise<boolean> {
  const deadline = performance.now() + commitMs
  while (!holds() && performance.now() < deadline) await setTimeout(5)
  return holds()
}
