import { Contrib, Enums, Models, Serialize, Spec } from '@cyclonedx/cyclonedx-library'
import type { Release } from './files.ts'
import type { PackageInside } from './packages-inside.ts'
import type { Program } from './programs.ts'
import type { Target } from './targets.ts'

/** The software bill of materials of a program for a target, as CycloneDX 1.6 JSON. */
export function sbomText(
  program: Program,
  target: Target,
  { version, commit, epochSeconds }: Release,
  packages: readonly PackageInside[],
): string {
  const licenses = new Contrib.License.Factories.LicenseFactory((text) => /^[\w.+() -]+$/.test(text))
  const own = new Models.Component(Enums.ComponentType.Application, program.name, {
    version,
    description: program.about,
    bomRef: `${program.name}@${version}`,
    licenses: new Models.LicenseRepository([licenses.makeFromString('Apache-2.0')]),
    properties: new Models.PropertyRepository([
      new Models.Property('posture:commit', commit),
      new Models.Property('posture:machine', `linux ${target.name}`),
    ]),
  })
  const bom = new Models.Bom({
    metadata: new Models.Metadata({ component: own, timestamp: new Date(epochSeconds * 1000) }),
  })
  for (const each of packages) {
    const purl = purlOf(each)
    const component = new Models.Component(Enums.ComponentType.Library, each.name, {
      version: each.version,
      bomRef: purl,
      purl,
      licenses: new Models.LicenseRepository([licenses.makeFromString(each.license)]),
    })
    bom.components.add(component)
    own.dependencies.add(component.bomRef)
  }
  const serializer = new Serialize.JsonSerializer(new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6))
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`
}

/** A package URL (purl-spec): the @ of an npm scope is percent-encoded. */
function purlOf({ type, name, version }: PackageInside): string {
  return `pkg:${type}/${name.replace(/^@/, '%40')}@${version}`
}
