import { expect, it } from 'vitest'
import { type Track, Tracks } from './tracks.ts'

const names = (tracks: Iterable<Track<number>>) => Array.from(tracks, ({ name }) => name)

function filled(...lanes: string[]) {
  const tracks = new Tracks<number>()
  for (const [i, lane] of lanes.entries()) tracks.add(lane, i)
  return { tracks, of: (name: string) => tracks.get(name) as Track<number> }
}

it('are taken in turn, in the order in which they became ready', () => {
  const { tracks, of } = filled('a', 'b', 'a')
  expect([tracks.size, tracks.peek(0)?.name, names(tracks.ready(0))]).toEqual([2, 'a', ['a', 'b']])
  expect(of('a').entries).toEqual([0, 2])
  tracks.begin(of('a'))
  expect([of('a').isRunning, tracks.peek(0)?.name]).toEqual([true, 'b'])
  of('a').entries.shift()
  tracks.end(of('a'))
  expect([of('a').isRunning, names(tracks.ready(0))]).toEqual([false, ['b', 'a']])
})

it('that run are not ready, whatever comes for them', () => {
  const { tracks, of } = filled('a')
  tracks.begin(of('a'))
  tracks.add('a', 9)
  expect(tracks.peek(0)).toBeUndefined()
})

it('are gone when nothing is left in them', () => {
  const { tracks, of } = filled('a')
  const a = of('a')
  tracks.begin(a)
  a.entries.shift()
  tracks.end(a, 50)
  expect([tracks.size, tracks.get('a'), tracks.nextAt(), tracks.peek(99)]).toEqual([0, undefined, undefined, undefined])
})

it('sleep until their time has come, whatever comes for them', () => {
  const { tracks, of } = filled('a', 'b')
  tracks.begin(of('a'))
  tracks.end(of('a'), 50)
  tracks.postpone(of('b'), 40)
  tracks.add('a', 9)
  expect([tracks.nextAt(), names(tracks.ready(39))]).toEqual([40, []])
  expect(names(tracks.ready(40))).toEqual(['b'])
  expect([tracks.nextAt(), names(tracks.ready(50)), tracks.nextAt()]).toEqual([50, ['b', 'a'], undefined])
})

it('can be roused, which makes none ready that runs', () => {
  const { tracks, of } = filled('a', 'b')
  tracks.postpone(of('a'), 50)
  tracks.begin(of('b'))
  tracks.rouse(of('a'))
  tracks.rouse(of('b'))
  expect([names(tracks.ready(0)), tracks.nextAt()]).toEqual([['a'], undefined])
})

it('can be taken away as a whole', () => {
  const { tracks, of } = filled('a', 'a', 'b')
  const [a, b] = [of('a'), of('b')]
  tracks.postpone(b, 50)
  expect([tracks.clear(a), tracks.clear(b)]).toEqual([[0, 1], [2]])
  expect([tracks.size, tracks.peek(99), tracks.nextAt()]).toEqual([0, undefined, undefined])
})

it('can be barred: nothing of it is begun until it is not barred any more, whatever comes in or ends', () => {
  const { tracks, of } = filled('a', 'b')
  tracks.bar('a')
  expect([names(tracks.ready(0)), tracks.isBarred('a'), tracks.isBarred('b')]).toEqual([['b'], true, false])
  tracks.add('a', 8)
  const track = of('a')
  tracks.begin(track)
  tracks.end(track)
  tracks.postpone(track, 50)
  expect(names(tracks.ready(50))).toEqual(['b'])
  // One that is not there yet, too.
  tracks.bar('c')
  tracks.add('c', 9)
  expect(names(tracks.ready(50))).toEqual(['b'])
  tracks.unbar('a')
  tracks.unbar('c')
  expect(names(tracks.ready(50))).toEqual(['b', 'a', 'c'])
  tracks.begin(track)
  tracks.unbar('a')
  expect(names(tracks.ready(50))).toEqual(['b', 'c'])
})
