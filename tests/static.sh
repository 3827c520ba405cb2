#!/bin/sh
# As root: runs the static programs in a root folder that has nothing but busybox, which records there; the captures are read
# there and by the programs of this host.
#   tests/static.sh FOLDER-OF-script/package [TACHO-REPORT]
# Needs busybox-static. What it mounts is in a namespace of its own.
set -eu
if [ "${1:-}" != --inside ]; then
  exec unshare --mount --propagation private "$0" --inside "$@"
fi
packages=$(cd "$2" && pwd) reader=${3:-tacho-report}

fail() {
  echo "tests/static.sh: $*" >&2
  exit 1
}
busybox=$(command -v busybox) || fail "busybox is missing; apt-get install busybox-static"
root=$(mktemp -d)
trap 'umount -R "$root/proc" "$root/sys" "$root/dev"; rm -rf --one-file-system "$root"' EXIT
mkdir "$root/bin" "$root/proc" "$root/sys" "$root/dev" "$root/alone" "$root/work"
cp "$busybox" "$root/bin/busybox"
for name in sh cat; do ln -s busybox "$root/bin/$name"; done
chroot "$root" /bin/sh -c : || fail "$busybox needs libraries; apt-get install busybox-static"
tar -C "$root" -xf "$packages"/tacho-[0-9]*-"$(uname -m)".tar.gz --transform 's|^[^/]*|programs|'
cp "$packages"/tacho-record-[0-9]*-"$(uname -m)" "$root/alone/tacho-record"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
inside() { chroot "$root" /bin/sh -c "cd /work && $*"; }

busy='i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
inside "/alone/tacho-record -g -o alone.data -- sh -c '$busy'"
inside "/alone/tacho-record -e open -o open.data -- cat /bin/cat >/dev/null"
inside "/programs/tacho record -g -o busy.data -- sh -c '$busy'"
inside "/programs/tacho report -i busy.data --no-children -s comm" | grep -q ' sh ' || fail "report in the empty root"
inside "/programs/tacho flamegraph -i busy.data -o busy.svg && /programs/tacho page -i busy.data -o busy.html"
grep -q '<svg' "$root/work/busy.svg" || fail "no flame graph"
inside "/programs/tacho sql busy.data 'SELECT 1'" 2>&1 | grep -q static || fail "sql does not say what is missing"
echo "recorded and read in a root folder with busybox alone"

"$reader" report -i "$root/work/alone.data" --no-children -s comm | grep -q ' sh ' || fail "report of alone.data here"
"$reader" table -i "$root/work/open.data" --by path | grep -q /bin/cat || fail "table of open.data here"
"$reader" folded -i "$root/work/busy.data" | grep -q '^sh;' || fail "folded stacks of busy.data here"
echo "read by $reader"
