#!/bin/sh
# The fixed workload on aarch64, under qemu: prints "the same bits" or the lines that differ.
#
#   apt-get install qemu-user-static
#   sh tests/evidence/aarch64.sh [numpy version [vectors]]
#
# With `vectors`, the digest of the recomputed answers of all golden vectors too, in some minutes of a processor.
# An aarch64 Python comes from the Debian sources of this machine into a folder of its own (no root, and nothing is
# installed); aarch64 wheels of numpy and gmpy2, and pure packages, come by pip. TESSERA_AARCH64 names another folder.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
numpy=${1:-2.4.6}
work=${TESSERA_AARCH64:-$root/build/aarch64}
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
: > "$work/status"

debian() {
    apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
        -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" "$@"
}

if [ ! -x "$work/root/usr/bin/python3" ]; then
    debian update || true # a source without arm64 does not matter
    debian install --yes --no-install-recommends --download-only python3-minimal libpython3-stdlib libstdc++6
    for package in "$work"/cache/archives/*.deb; do
        dpkg-deb --extract "$package" "$work/root"
    done
fi

emulated="qemu-aarch64-static -L $work/root $work/root/usr/bin/python3"
version=$($emulated -c 'import sys; print("%d.%d" % sys.version_info[:2])')
packages=$work/numpy-$numpy-python-$version
if [ ! -d "$packages/hypothesis" ]; then
    python3 -m pip install --quiet --target "$packages" --only-binary=:all: --python-version "$version" \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux2014_aarch64 \
        "numpy==$numpy" mpmath lark gmpy2 jsonschema pytest pytest-xdist pycparser hypothesis
fi

export PYTHONPATH="$packages:$root/reference:$root/conformance/harness"
$emulated -c 'import platform; print(platform.machine())'
$emulated "$here/digest_workload.py" > "$work/found"
grep -v '^#' "$here/workload.sha256" | diff - "$work/found" && echo "the same bits"
if [ "${2:-}" = vectors ]; then
    $emulated -m tessera_conformance vectors check --recompute --digest | tail -n 1 | diff "$here/vectors.sha256" - \
        && echo "the same answers of all vectors"
fi
