#include "cli/mpi/mpi_team.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/standard_streams.hpp"
#include "cli/usage_error.hpp"
#include "planner/parts/part_files.hpp"

namespace specdec::cli {
namespace {

/// Tags of messages between a rank and rank 0: requests, units, and the state that is handed over at the end.
enum Tag { of_request, of_unit, of_state };
enum Request : std::int64_t { next_unit, no_more };

/// MPI itself waits by asking without a pause, which takes a processor from ranks that work.
constexpr auto pause = std::chrono::milliseconds(1);

template <class IsThere>
void wait_until(const IsThere& is_there) {
  while (!is_there()) std::this_thread::sleep_for(pause);
}

void finish(MPI_Request request) {
  wait_until([&] {
    int is_done = 0;
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    return is_done != 0;
  });
}

void send(const void* bytes, std::size_t size, int to, Tag tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(bytes, static_cast<int>(size), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
  finish(request);
}

void send(std::int64_t number, int to, Tag tag) { send(&number, sizeof number, to, tag); }

std::int64_t received_number(int from, Tag tag) {
  std::int64_t number = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&number, sizeof number, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
  finish(request);
  return number;
}

MPI_Status awaited_message(int from, Tag tag) {
  MPI_Status status;
  wait_until([&] {
    int is_there = 0;
    MPI_Iprobe(from, tag, MPI_COMM_WORLD, &is_there, &status);
    return is_there != 0;
  });
  return status;
}

/// Receives the state of a part or of a summary.
std::string received_state(int from) {
  const MPI_Status status = awaited_message(from, of_state);
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  std::string state(static_cast<std::size_t>(size), '\0');
  MPI_Recv(state.data(), size, MPI_BYTE, from, of_state, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return state;
}

/// Rank 0's answer as to whether there is work, on every rank.
bool agreed(bool has_work) {
  int flag = has_work ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibcast(&flag, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
  finish(request);
  return flag != 0;
}

}  // namespace

MpiTeam::MpiTeam() {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
}

MpiTeam::~MpiTeam() { remove_parts(); }

void MpiTeam::remove_parts() {
  std::error_code none;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, none);
}

bool MpiTeam::has_work() { return rank_ == 0 || agreed(false); }

void MpiTeam::end() {
  if (rank_ == 0 && !has_begun_) agreed(false);
}

void MpiTeam::begin(const std::set<std::int64_t>& done) {
  Team::begin(done);
  has_begun_ = true;
  agreed(true);
  server_ = std::thread([this] { serve(); });
}

void MpiTeam::serve() {
  for (int at_work = size_ - 1; at_work > 0;) {
    const int from = awaited_message(MPI_ANY_SOURCE, of_request).MPI_SOURCE;
    if (received_number(from, of_request) == no_more) {
      --at_work;
    } else {
      send(deal(), from, of_unit);
    }
  }
}

std::int64_t MpiTeam::next() {
  if (rank_ == 0) return deal();
  if (!is_asked_) ask();
  const std::int64_t unit = received_number(0, of_unit);
  ask();
  return unit;
}

void MpiTeam::ask() {
  send(next_unit, 0, of_request);
  is_asked_ = true;
}

void MpiTeam::tell(double share) {
  const auto now = std::chrono::steady_clock::now();
  if (rank_ != 0 || now - told_ < std::chrono::seconds(10)) return;
  told_ = now;
  say(fmt::format("specdec: analysing, {:.0f}%, {} ranks\n", 100 * share, size_));
}

bool MpiTeam::gather(planner::RecordingSummary& own) {
  if (rank_ == 0) server_.join();
  // The unit that is there already lies behind the end.
  if (is_asked_) received_number(0, of_unit);
  if (rank_ != 0) send(no_more, 0, of_request);
  for (int step = 1; step < size_; step *= 2) {
    if (rank_ % (2 * step) != 0) {
      const std::string state = own.state();
      send(state.data(), state.size(), rank_ - step, of_state);
      return false;
    }
    if (rank_ + step >= size_) continue;
    auto other = planner::RecordingSummary::from_state(received_state(rank_ + step));
    own.merge(other);
  }
  return true;
}

traces::Shard MpiTeam::own() {
  if (rank_ == 0 && !has_begun_) {
    has_begun_ = true;
    agreed(true);
  }
  return {rank_, size_};
}

std::string MpiTeam::part() {
  std::string name = (std::filesystem::temp_directory_path() / "specdec-mpi-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw UsageError(fmt::format("the folder {} cannot be made: {}", name, std::strerror(errno)));
  folder_ = name;
  return planner::part_path(folder_.string(), own()).string();
}

std::vector<std::string> MpiTeam::gathered() {
  const std::filesystem::path own_part = planner::part_path(folder_.string(), own());
  if (rank_ != 0) {
    std::ifstream file(own_part, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    send(bytes.data(), bytes.size(), 0, of_state);
    return {};
  }
  std::vector<std::string> parts = {own_part.string()};
  for (int rank = 1; rank < size_; ++rank) {
    parts.push_back(planner::part_path(folder_.string(), {rank, size_}).string());
    std::ofstream file(parts.back(), std::ios::binary);
    const std::string bytes = received_state(rank);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (!file) throw UsageError(fmt::format("the part {} cannot be written", parts.back()));
  }
  return parts;
}

}  // namespace specdec::cli
