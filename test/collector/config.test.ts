import t from 'tap'
import { lanesFor } from '../../collector/config.ts'

for (const [source, wanted, cores, lanes] of [
  ['interface', undefined, 1, 0],
  ['interface', undefined, 2, 0],
  ['interface', undefined, 3, 1],
  ['interface', undefined, 16, 4],
  ['interface', 2, 2, 2],
  ['file', undefined, 1, 1],
  ['file', undefined, 2, 1],
  ['file', undefined, 4, 3],
  ['file', undefined, 16, 4],
  ['file', 0, 16, 0],
  ['file', 2, 1, 1],
  ['file', 2, 2, 1],
  ['file', 2, 3, 2],
  ['file', 8, 16, 8],
] as const) {
  t.equal(lanesFor(source, wanted, cores), lanes, `${source}, setting ${wanted}, ${cores} cores`)
}
